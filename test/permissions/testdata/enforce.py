"""Calls operations in moto with a role that has a policy, and prints as JSON which of them moto refused.

The arguments are the policy and a list of operations such as ec2:DescribeInstances, both as JSON.
"""
import json
import sys

import boto3
from botocore import xform_name
from botocore.exceptions import ClientError
from moto import mock_aws
from moto.core import set_initial_no_auth_action_count

policy, operations = sys.argv[1], json.loads(sys.argv[2])
options = {"region_name": "eu-central-1"}
instance = ["i-0123456789abcdef0"]
inputs = {
    "ec2:RunInstances": {"MinCount": 1, "MaxCount": 1, "ImageId": "ami-12c6146b"},
    "ec2:TerminateInstances": {"InstanceIds": instance},
    "ec2:StopInstances": {"InstanceIds": instance},
    "ec2:CreateTags": {"Resources": instance, "Tags": [{"Key": "a", "Value": "b"}]},
}


def refused(client, operation):
    service, name = operation.split(":")
    try:
        getattr(client(service), xform_name(name))(**inputs.get(operation, {}))
    except ClientError as error:
        return error.response["Error"]["Code"] in ("AccessDenied", "AccessDeniedException", "UnauthorizedOperation")
    return False


with mock_aws():
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
    iam = boto3.client("iam", **options, **keys)
    trust = {"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}}
    role = iam.create_role(RoleName="foresail", AssumeRolePolicyDocument=json.dumps(trust))["Role"]
    iam.put_role_policy(RoleName="foresail", PolicyName="foresail", PolicyDocument=policy)
    session = boto3.client("sts", **options, **keys).assume_role(RoleArn=role["Arn"], RoleSessionName="test")["Credentials"]
    assumed = {
        "aws_access_key_id": session["AccessKeyId"],
        "aws_secret_access_key": session["SecretAccessKey"],
        "aws_session_token": session["SessionToken"],
    }

    @set_initial_no_auth_action_count(0)
    def call():
        return [o for o in operations if refused(lambda service: boto3.client(service, **options, **assumed), o)]

    json.dump(call(), sys.stdout)
