"""Sign-in: Django's own, with a throttle and the console's look."""

from __future__ import annotations

import math
from typing import Any

from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse

from scheduler.live import wording
from scheduler.services import sign_ins
from scheduler.web.look import look_of


class SignIn(LoginView):
    """The sign-in page. A throttled try is refused before the password is looked at, so that it tells nothing."""

    template_name = "ops/sign_in.html"
    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: str, **kwargs: Any) -> HttpResponse:
        """Count the try, then check the password."""
        self._try = sign_ins.begin(self._username(), str(request.META.get("REMOTE_ADDR", "")))
        left_s = math.ceil(self._try.wait_s)
        if not left_s:
            return super().post(request, *args, **kwargs)
        again = wording.duration(left_s)
        form = AuthenticationForm(request, initial={"username": self._username()})
        response = self.render_to_response(self.get_context_data(form=form, wait=again), status=429)
        response["Retry-After"] = str(left_s)
        return response

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """Forget earlier failures."""
        sign_ins.succeed(self._try)
        return super().form_valid(form)

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        """The answer is 422, so that no cache or script takes it for success."""
        return self.render_to_response(self.get_context_data(form=form), status=422)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add the look; this page has no shell."""
        return super().get_context_data(look=look_of(self.request), **kwargs)

    def _username(self) -> str:
        return str(self.request.POST.get("username", ""))[:150]
