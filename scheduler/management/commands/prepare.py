"""Everything between a set-up environment and a served product; doing it again changes nothing."""

from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand

from scheduler import conf
from scheduler.management import credentials, static_files
from scheduler.services.people import have_roles
from scheduler.services.seeding import seed_defaults


class Command(BaseCommand):
    """Migrate, collect static files, and have roles, the demo tenant, pool and credentials in place."""

    help = "Bring database, static files and demo defaults up to date."

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the steps in order."""
        call_command("migrate", interactive=False, verbosity=0)
        have_roles()
        static_files.collect()
        config = conf.current()
        if config.embedded or config.demo:
            self._seed(config)

    def _seed(self, config: conf.Config) -> None:
        """Have the defaults exist and write the ways in; secrets of an earlier run stay valid and are kept."""
        known = credentials.read(config)
        seed = seed_defaults(
            provider_url=credentials.provider_url(config),
            provider_url_before=known.provider_url if known else None,
            token=known.token if known else None,
            admin_token=known.admin_token if known else None,
            password=known.password if known else None,
            demo=config.demo,
        )
        written = credentials.write(
            config,
            credentials.Credentials(
                url=credentials.url(config),
                token=seed.token,
                admin_token=seed.admin_token,
                username=seed.username,
                password=seed.password,
                provider_url=credentials.provider_url(config),
            ),
        )
        self.stdout.write(f"Ready. Sign-in and tokens are in {written}")
