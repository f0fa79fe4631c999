#!/bin/sh
# User data of a kubeadm node on an image that has containerd, kubelet, kubeadm, curl and the AWS CLI in the versions of the cluster.
# What it needs to join is a kubeconfig with the cluster's CA and a bootstrap token: a SecureString in Parameter Store, which the role
# of the workers may read. Write it anew before the token expires.
set -eu
parameter=/foresail/workers/token # yours
version=v1.34.1                   # that of your control plane

imds() { curl -sSf --retry 5 -H "X-aws-ec2-metadata-token: $session" "http://169.254.169.254/latest/meta-data/$1"; }
session=$(curl -sSf --retry 5 -X PUT -H "X-aws-ec2-metadata-token-ttl-seconds: 300" http://169.254.169.254/latest/api/token)
zone=$(imds placement/availability-zone) region=$(imds placement/region) id=$(imds instance-id) type=$(imds instance-type)

installed=$(kubeadm version -o short)
[ "$installed" = "$version" ] || { echo "kubeadm is $installed, not $version" >&2; exit 1; }
umask 077
folder=${FOLDER:-/etc/kubernetes}
mkdir -p "$folder"
aws ssm get-parameter --region "$region" --name "$parameter" --with-decryption --query Parameter.Value --output text > "$folder/discovery.conf"
cat > "$folder/join.yaml" <<END
apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery:
  file: {kubeConfigPath: $folder/discovery.conf}
nodeRegistration:
  kubeletExtraArgs:
  - {name: provider-id, value: "aws:///$zone/$id"}
  - {name: node-labels, value: "topology.kubernetes.io/zone=$zone,node.kubernetes.io/instance-type=$type"}
END
kubeadm join --config "$folder/join.yaml"
rm "$folder/discovery.conf"
