#!/bin/sh
# User data of a K3s agent on an image with curl and the AWS CLI, such as Amazon Linux 2023. The token stays out of it: it is a
# SecureString in Parameter Store, which the role of the workers may read.
set -eu
server=https://SERVER:6443        # yours
parameter=/foresail/workers/token # yours: K3s' agent token, /var/lib/rancher/k3s/server/agent-token on a server
version=v1.34.1+k3s1              # that of your servers

imds() { curl -sSf --retry 5 -H "X-aws-ec2-metadata-token: $session" "http://169.254.169.254/latest/meta-data/$1"; }
session=$(curl -sSf --retry 5 -X PUT -H "X-aws-ec2-metadata-token-ttl-seconds: 300" http://169.254.169.254/latest/api/token)
zone=$(imds placement/availability-zone) region=$(imds placement/region) id=$(imds instance-id) type=$(imds instance-type)

umask 077
folder=${FOLDER:-/etc/rancher/k3s}
mkdir -p "$folder"
aws ssm get-parameter --region "$region" --name "$parameter" --with-decryption --query Parameter.Value --output text > "$folder/token"
cat > "$folder/config.yaml" <<END
server: $server
token-file: $folder/token
kubelet-arg:
- provider-id=aws:///$zone/$id
node-label:
- topology.kubernetes.io/zone=$zone
- node.kubernetes.io/instance-type=$type
END
curl -sSfL --retry 5 "https://raw.githubusercontent.com/k3s-io/k3s/$version/install.sh" > "$folder/install.sh"
INSTALL_K3S_VERSION=$version INSTALL_K3S_EXEC=agent sh "$folder/install.sh"
