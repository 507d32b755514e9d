"""Sign-in: Django's own, with a throttle and the console's look."""

from __future__ import annotations

import math
import time
from typing import Any

from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse

from scheduler.live import wording
from scheduler.web import throttle
from scheduler.web.look import look_of


class SignIn(LoginView):
    """The sign-in page. A throttled try is refused before the password is looked at, so that it tells nothing."""

    template_name = "ops/sign_in.html"
    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: str, **kwargs: Any) -> HttpResponse:
        """Check the throttle, then the password."""
        left_s = throttle.must_wait_s(self._username(), self._address(), now_s=time.time())
        if not left_s:
            return super().post(request, *args, **kwargs)
        again = wording.duration(math.ceil(left_s))
        form = AuthenticationForm(request, initial={"username": self._username()})
        response = self.render_to_response(self.get_context_data(form=form, wait=again), status=429)
        response["Retry-After"] = str(math.ceil(left_s))
        return response

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """Forget earlier failures."""
        throttle.forgive(self._username(), self._address())
        return super().form_valid(form)

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        """Count the failure; the answer is 422 so that no cache or script takes it for success."""
        throttle.note_failure(self._username(), self._address(), now_s=time.time())
        return self.render_to_response(self.get_context_data(form=form), status=422)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add the look; this page has no shell."""
        return super().get_context_data(look=look_of(self.request), **kwargs)

    def _username(self) -> str:
        return str(self.request.POST.get("username", ""))[:150]

    def _address(self) -> str:
        return str(self.request.META.get("REMOTE_ADDR", ""))
