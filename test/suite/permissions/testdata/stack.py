"""Creates a stack in moto from a template and prints what came of it as JSON.

The arguments are moto's address, the account, the template and the parameters as JSON.
"""
import json
import sys

import boto3

address, account, template, parameters = sys.argv[1:]


def client(service):
    made = boto3.client(
        service, endpoint_url=address, region_name="eu-central-1", aws_access_key_id="test", aws_secret_access_key="test"
    )
    made.meta.events.register("before-call", lambda params, **_: params["headers"].update({"X-Moto-Account-Id": account}))
    return made


cloudformation, iam = client("cloudformation"), client("iam")
cloudformation.create_stack(
    StackName="foresail",
    TemplateBody=open(template).read(),
    Parameters=[{"ParameterKey": k, "ParameterValue": v} for k, v in json.loads(parameters).items()],
    Capabilities=["CAPABILITY_IAM"],
)
stack = cloudformation.describe_stacks(StackName="foresail")["Stacks"][0]
outputs = {o["OutputKey"]: o["OutputValue"] for o in stack["Outputs"]}


def statements(role):
    found = []
    for attached in iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]:
        policy = iam.get_policy(PolicyArn=attached["PolicyArn"])["Policy"]
        version = iam.get_policy_version(PolicyArn=policy["Arn"], VersionId=policy["DefaultVersionId"])
        found += version["PolicyVersion"]["Document"]["Statement"]
    return {"Version": "2012-10-17", "Statement": found}


data = client("ec2").describe_launch_template_versions(LaunchTemplateId=outputs["LaunchTemplate"])
queue = client("sqs").get_queue_attributes(QueueUrl=outputs["InterruptionQueue"], AttributeNames=["All"])
json.dump(
    {
        "Status": stack["StackStatus"],
        "Outputs": outputs,
        "Controller": statements(outputs["ControllerRole"].split("/")[-1]),
        "Trust": iam.get_role(RoleName=outputs["ControllerRole"].split("/")[-1])["Role"]["AssumeRolePolicyDocument"],
        "Worker": statements(outputs["WorkerRole"].split("/")[-1]),
        "Patterns": [json.loads(r["EventPattern"]) for r in client("events").list_rules()["Rules"]],
        "Queue": queue["Attributes"],
        "LaunchTemplateData": data["LaunchTemplateVersions"][0]["LaunchTemplateData"],
    },
    sys.stdout,
    default=str,
)
