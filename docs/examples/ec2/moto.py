"""Prints what a WorkerPool needs to run on moto, for kubectl apply: the pool on moto's own subnets, or a Node for each of its instances.

Run it as moto.py pool or moto.py nodes, with AWS_ENDPOINT_URL and AWS_REGION, by the Python that has moto.
"""

import json
import os
import sys

import boto3
from botocore.config import Config

# A server that has just been started may not listen yet.
ec2 = boto3.client("ec2", region_name=os.environ["AWS_REGION"], config=Config(retries={"max_attempts": 10}))


def pool():
    image = ec2.describe_images()["Images"][0]["ImageId"]
    template = ec2.create_launch_template(LaunchTemplateName="workers", LaunchTemplateData={"ImageId": image})
    provider = {
        "launchTemplate": template["LaunchTemplate"]["LaunchTemplateId"],
        "region": os.environ["AWS_REGION"],
        "subnets": [{"zone": s["AvailabilityZone"], "id": s["SubnetId"]} for s in ec2.describe_subnets()["Subnets"]],
        "instanceTypes": ["t3.medium"],
    }
    spec = {"min": 2, "max": 4, "provider": {"ec2": provider}}
    return [{"apiVersion": "foresail.dev/v1alpha1", "kind": "WorkerPool", "metadata": {"name": "moto"}, "spec": spec}]


def nodes():
    pages = ec2.get_paginator("describe_instances").paginate(Filters=[
        {"Name": "tag:foresail.dev/pool", "Values": ["moto"]},
        {"Name": "instance-state-name", "Values": ["pending", "running"]},
    ])
    instances = [i for page in pages for r in page["Reservations"] for i in r["Instances"]]
    return [node(i["InstanceId"], i["Placement"]["AvailabilityZone"]) for i in instances]


def node(instance, zone):
    size = {"cpu": "2", "memory": "4Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": instance, "labels": {"topology.kubernetes.io/zone": zone}},
        "spec": {"providerID": f"aws:///{zone}/{instance}"},
        "status": {"capacity": size, "allocatable": size},
    }


items = {"pool": pool, "nodes": nodes}[sys.argv[1]]()
print(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
