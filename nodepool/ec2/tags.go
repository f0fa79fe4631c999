package ec2

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/foresail/foresail/nodepool/provider"
)

// The tags of an instance, after the prefix.
const (
	clusterTag    = "cluster"
	poolTag       = "pool"
	actionTag     = "action"
	slotTag       = "slot"
	tokenTag      = "token"
	joinFailedTag = "join-failed"
)

// nameTag is what the console shows as the name of an instance.
const nameTag = "Name"

// tags returns those of a new instance, in one order: a token belongs to its parameters.
func (p *Provider) tags(l provider.Launch) []types.Tag {
	all := map[string]string{nameTag: p.options.Pool}
	maps.Copy(all, p.options.Spec.Tags)
	all[p.prefix+clusterTag] = p.options.Cluster
	all[p.prefix+poolTag] = p.options.Pool
	all[p.prefix+actionTag] = l.Action
	all[p.prefix+slotTag] = strconv.Itoa(l.Slot)
	all[p.prefix+tokenTag] = l.Token
	list := make([]types.Tag, 0, len(all))
	for _, key := range slices.Sorted(maps.Keys(all)) {
		list = append(list, types.Tag{Key: aws.String(key), Value: aws.String(all[key])})
	}
	return list
}

// tagged chooses instances of the pool by further tags, given as keys and values in turn.
func (p *Provider) tagged(more ...string) []types.Filter {
	tags := append([]string{clusterTag, p.options.Cluster, poolTag, p.options.Pool}, more...)
	var filters []types.Filter
	for i := 0; i+1 < len(tags); i += 2 {
		filters = append(filters, types.Filter{Name: aws.String("tag:" + p.prefix + tags[i]), Values: []string{tags[i+1]}})
	}
	return filters
}

// controllers are the tags by which other controllers mark the instances that they launch, replace and terminate.
var controllers = []struct{ tag, owner string }{
	{"aws:autoscaling:groupName", "the Auto Scaling group"},
	{"aws:ec2spot:fleet-request-id", "the Spot Fleet"},
	{"eks:nodegroup-name", "the EKS node group"},
	{"karpenter.sh/nodeclaim", "Karpenter's NodeClaim"},
	{"karpenter.sh/nodepool", "Karpenter's NodePool"},
	{"karpenter.sh/provisioner-name", "Karpenter's Provisioner"},
}

// ownedBy returns the controller that an instance with these tags belongs to, "" if there is none.
func ownedBy(tags map[string]string) string {
	for _, c := range controllers {
		if name, ok := tags[c.tag]; ok {
			return strings.TrimSpace(c.owner + " " + name)
		}
	}
	return ""
}

// disowned returns which tag makes an instance another's than the pool's, "" if it is the pool's.
func (p *Provider) disowned(tags map[string]string) string {
	for _, own := range [][2]string{{clusterTag, p.options.Cluster}, {poolTag, p.options.Pool}} {
		if value := tags[p.prefix+own[0]]; value != own[1] {
			return fmt.Sprintf("its tag %s%s is %q, not %q", p.prefix, own[0], value, own[1])
		}
	}
	return ""
}

// tagsOf returns the tags of an instance.
func tagsOf(instance types.Instance) map[string]string {
	tags := make(map[string]string, len(instance.Tags))
	for _, tag := range instance.Tags {
		tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
	}
	return tags
}
