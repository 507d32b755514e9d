"""Web and engine in one process, with the demo's companions as children: what ``make run`` starts."""

import argparse
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from scheduler import conf
from scheduler.management import web_server
from scheduler.management.children import die_with_parent
from scheduler.management.serving import Serving


class Command(BaseCommand):
    """Run everything in one process until SIGINT or SIGTERM; a second one does not wait for running work."""

    help = "Serve the web and run an engine in one process."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options."""
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
        parser.add_argument("--with-parent", action="store_true", help="stop when the starting process ends")

    def handle(self, *args: Any, **options: Any) -> None:
        """Take the port, then run the parts."""
        if options["with_parent"]:
            die_with_parent()
        config = conf.current()
        try:
            listener = web_server.listen(options["host"], config.port)
        except web_server.PortTaken as error:
            raise CommandError(str(error)) from error
        status = Serving(config).run(listener)
        if status:
            sys.exit(status)
