// Package ec2 launches the instances of a pool as EC2 instances, from a launch template.
//
// Every instance carries tags from its launch on that identify its owner: <prefix>/cluster, /pool, /action, /slot and
// /token. Only instances with the pool's cluster and pool tags are listed, terminated or tagged: one account and region
// may have several clusters with pools of the same name. A launch that EC2 may have carried out is repeated only by the
// caller and only with the same client token: the SDK does not retry RunInstances and CreateFleet.
package ec2
