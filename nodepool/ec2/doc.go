// Package ec2 launches the instances of a pool as EC2 instances, from a launch template.
//
// An instance carries from its first moment tags that say whose it is: <prefix>/cluster, /pool, /action, /slot and /token.
// Nothing is listed, terminated or tagged that does not carry the cluster and the pool: in one account and region there may
// be several clusters, with pools of the same name. A call that EC2 may have carried out is never repeated but with
// the same client token, and that is left to who asked: RunInstances is tried once.
package ec2
