"""The JSON Schema of `kit audit --json`: python -m kit.audit.json_schema > docs/reference/audit.schema.json."""

import sys

from kit.audit.finding import AUDIT_SCHEMA, Audit
from kit.profile.json_schema import json_schema

if __name__ == "__main__":
    sys.stdout.write(json_schema(Audit, AUDIT_SCHEMA).decode())
