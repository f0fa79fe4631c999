package ec2

import (
	"errors"
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

// nameTag is the tag that the console shows as the name of an instance.
const nameTag = "Name"

// identity is the set of tags that make an instance the pool's.
type identity struct {
	prefix        string // of tags, with the slash
	cluster, pool string
	extra         map[string]string // further tags of the pool
}

// validate returns an error for tags that EC2 rejects or that would mark an instance as another owner's.
func (d identity) validate() error {
	if d.cluster == "" {
		return errors.New("cluster: must not be empty: it is the value of the tag " + d.prefix + clusterTag)
	}
	if d.pool == "" {
		return errors.New("pool: must not be empty: it is the value of the tag " + d.prefix + poolTag)
	}
	for key := range d.extra {
		if strings.HasPrefix(key, d.prefix) {
			return fmt.Errorf("tags: %q: must not begin with %q, which identifies the owner of an instance",
				key, d.prefix)
		}
		if owner := ownedBy(map[string]string{key: ""}); owner != "" {
			return fmt.Errorf("tags: %q: must not be a tag that marks instances of %s", key, owner)
		}
	}
	return nil
}

// tags returns the tags of a new instance, sorted: a client token belongs to its parameters.
func (d identity) tags(l provider.Launch) []types.Tag {
	all := map[string]string{nameTag: d.pool}
	maps.Copy(all, d.extra)
	all[d.prefix+clusterTag] = d.cluster
	all[d.prefix+poolTag] = d.pool
	all[d.prefix+actionTag] = l.Action
	all[d.prefix+slotTag] = strconv.Itoa(l.Slot)
	all[d.prefix+tokenTag] = l.Token
	list := make([]types.Tag, 0, len(all))
	for _, key := range slices.Sorted(maps.Keys(all)) {
		list = append(list, types.Tag{Key: aws.String(key), Value: aws.String(all[key])})
	}
	return list
}

// specifications have EC2 tag the resources of a launch when it creates them.
func (d identity) specifications(l provider.Launch, kinds ...types.ResourceType) []types.TagSpecification {
	out := make([]types.TagSpecification, len(kinds))
	for i, kind := range kinds {
		out[i] = types.TagSpecification{ResourceType: kind, Tags: d.tags(l)}
	}
	return out
}

// filters select instances of the pool, by further tags that are given as keys and values in turn.
func (d identity) filters(more ...string) []types.Filter {
	tags := append([]string{clusterTag, d.cluster, poolTag, d.pool}, more...)
	var filters []types.Filter
	for i := 0; i+1 < len(tags); i += 2 {
		filters = append(filters, types.Filter{Name: aws.String("tag:" + d.prefix + tags[i]), Values: []string{tags[i+1]}})
	}
	return filters
}

// foreign returns why the pool must not change an instance, "" if it may.
func (d identity) foreign(tags map[string]string) string {
	if why := d.disowned(tags); why != "" {
		return why
	}
	if owner := ownedBy(tags); owner != "" {
		return "it belongs to " + owner
	}
	return ""
}

// disowned returns why the tags of an instance do not make it the pool's, "" if they do.
func (d identity) disowned(tags map[string]string) string {
	for _, own := range [][2]string{{clusterTag, d.cluster}, {poolTag, d.pool}} {
		if value := tags[d.prefix+own[0]]; value != own[1] {
			return fmt.Sprintf("its tag %s%s is %q, not %q", d.prefix, own[0], value, own[1])
		}
	}
	return ""
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

// tagsOf returns the tags of an instance.
func tagsOf(instance types.Instance) map[string]string {
	tags := make(map[string]string, len(instance.Tags))
	for _, tag := range instance.Tags {
		tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
	}
	return tags
}
