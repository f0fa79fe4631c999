"""Calls operations in moto with a role that has a policy, and prints as JSON which of them moto refused.

The arguments are moto's address, the policy and a list of operations such as ec2:DescribeInstances, both as JSON. While it
runs, moto looks at the rights of every call.
"""
import json
import sys
import urllib.request

import boto3
from botocore import xform_name
from botocore.exceptions import ClientError

address, policy, operations = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
instance = ["i-0123456789abcdef0"]
inputs = {
    "ec2:RunInstances": {"MinCount": 1, "MaxCount": 1, "ImageId": "ami-12c6146b"},
    "ec2:TerminateInstances": {"InstanceIds": instance},
    "ec2:StopInstances": {"InstanceIds": instance},
    "ec2:CreateTags": {"Resources": instance, "Tags": [{"Key": "a", "Value": "b"}]},
}


def client(service, keys):
    return boto3.client(service, endpoint_url=address, region_name="eu-central-1", **keys)


def let_pass(calls):
    """Has moto look at the rights of calls after so many of them."""
    request = urllib.request.Request(address + "/moto-api/reset-auth", str(calls).encode(), {"Content-Type": "text/plain"})
    urllib.request.urlopen(request).close()


def refused(clients, operation):
    service, name = operation.split(":")
    try:
        getattr(clients[service], xform_name(name))(**inputs.get(operation, {}))
    except ClientError as error:
        return error.response["Error"]["Code"] in ("AccessDenied", "AccessDeniedException", "UnauthorizedOperation")
    return False


keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
iam = client("iam", keys)
trust = {"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}}
role = iam.create_role(RoleName="foresail", AssumeRolePolicyDocument=json.dumps(trust))["Role"]
iam.put_role_policy(RoleName="foresail", PolicyName="foresail", PolicyDocument=policy)
session = client("sts", keys).assume_role(RoleArn=role["Arn"], RoleSessionName="test")["Credentials"]
assumed = {
    "aws_access_key_id": session["AccessKeyId"],
    "aws_secret_access_key": session["SecretAccessKey"],
    "aws_session_token": session["SessionToken"],
}
clients = {service: client(service, assumed) for service in {o.split(":")[0] for o in operations}}
let_pass(0)
try:
    json.dump([o for o in operations if refused(clients, o)], sys.stdout)
finally:
    let_pass(float("inf"))
