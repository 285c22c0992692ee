"""The Celery app of `littleghost worker` for teams that have none: `celery -A` this module.

Workers of it import the modules of LITTLEGHOST_IMPORTS and know their assemblies.
"""

from littleghost.celery.app import make_app
from littleghost.settings import Settings

app = make_app(Settings.from_environment())
