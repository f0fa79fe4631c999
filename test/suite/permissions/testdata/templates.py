"""Checks a template of CloudFormation with cfn-lint, and prints it and a file of Terraform as JSON.

The arguments are the template and the file. Exits with cfn-lint's code if that finds something.
"""
import json
import sys

import hcl2
from cfnlint.decode import cfn_yaml
from cfnlint.runner import main

template, terraform = sys.argv[1:]
# An image may also be named by a parameter of Systems Manager, for which there is no type.
sys.argv[1:] = ["-i", "W2506", "-r", "eu-central-1", "--", template]
try:
    main()
except SystemExit as end:
    if end.code:
        raise
with open(terraform) as file:
    json.dump({"CloudFormation": cfn_yaml.load(template), "Terraform": hcl2.load(file)}, sys.stdout)
