// Package ec2 launches the instances of a pool as EC2 instances, from a launch template.
//
// An instance carries from its first moment tags that say whose it is: <prefix>/pool, /action, /slot and /token. Nothing
// is terminated or tagged that does not carry the pool's. A call that EC2 may have carried out is never repeated but with
// the same client token, and that is left to who asked: RunInstances is tried once.
package ec2
