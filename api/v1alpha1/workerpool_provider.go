package v1alpha1

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// MaxPodsENI is the value of provider.ec2.maxPods for what the VPC CNI has addresses for.
const MaxPodsENI = "ENI"

// ProviderSpec is implemented by the type of each field of [PoolProvider]. It answers what follows from the spec alone.
//
// +kubebuilder:object:generate=false
type ProviderSpec interface {
	// Summary says in one line where instances come from.
	Summary() string
	// AWSRegion returns the region of the instances, "" outside of AWS.
	AWSRegion() string
	// NodeShapes returns the zones and the instance types of the nodes that the provider can launch, and the labels of all of
	// them, as far as the spec has them: no types if it does not name them.
	NodeShapes() (zones, instanceTypes []string, labels map[string]string)
	// Queue returns the queue of the pool's own that interruptions are read from, with the field that names it; "" if it has none.
	Queue() (queue, field string)
	// SpotWarning says what Spot instances lose without a field that is absent, and which to set; "" if none is missing.
	SpotWarning() string
}

var (
	_ ProviderSpec = (*EC2Provider)(nil)
	_ ProviderSpec = (*SimulatedProvider)(nil)
)

// ProviderNames returns the fields of PoolProvider, one for each kind of provider, as they are written in YAML.
func ProviderNames() []string { return fieldNames(reflect.TypeFor[PoolProvider]()) }

// Selected returns the field of p that is set and its value, "" and nil if there is none.
func (p *PoolProvider) Selected() (name string, spec ProviderSpec) {
	v := reflect.ValueOf(*p)
	for i, name := range ProviderNames() {
		if !v.Field(i).IsNil() {
			return name, v.Field(i).Interface().(ProviderSpec)
		}
	}
	return "", nil
}

// PoolProvider selects where instances come from. Each field is a provider; a test compares the two rules with the fields.
//
// +kubebuilder:validation:XValidation:rule="[has(self.ec2), has(self.simulated)].exists_one(set, set)",message="provider must have exactly one of: ec2, simulated"
// +kubebuilder:validation:XValidation:rule="[has(self.ec2), has(self.simulated)] == [has(oldSelf.ec2), has(oldSelf.simulated)]",message="provider must not change, as no pool would manage the instances of the old provider: delete the WorkerPool, which terminates its nodes unless deletionPolicy is Orphan, and create another"
type PoolProvider struct {
	// EC2 instances.
	// +optional
	EC2 *EC2Provider `json:"ec2,omitempty"`
	// Nodes that exist in the Kubernetes API only, to try the pool with kwok as the kubelets.
	// +optional
	Simulated *SimulatedProvider `json:"simulated,omitempty"`
}

// EC2Provider launches EC2 instances.
//
// +kubebuilder:validation:XValidation:rule="self.region == oldSelf.region",message="provider.ec2.region must not change, as no pool would manage the instances of the old region: delete the WorkerPool, which terminates its nodes unless deletionPolicy is Orphan, and create another",fieldPath=".region"
// +kubebuilder:validation:XValidation:rule="self.subnets.all(subnet, subnet.zone.startsWith(self.region))",message="provider.ec2.subnets must be in zones of the region, such as eu-central-1a",fieldPath=".subnets"
// +kubebuilder:validation:XValidation:rule="!has(self.tags) || self.tags.all(key, !key.startsWith('foresail.dev') && !key.startsWith('aws:'))",message="provider.ec2.tags must have keys that begin with neither foresail.dev nor aws:",fieldPath=".tags"
// +kubebuilder:validation:XValidation:rule="has(self.instanceTypes) != has(self.requirements)",message="provider.ec2 must have exactly one of: instanceTypes, requirements"
type EC2Provider struct {
	// Id of the launch template, such as lt-0123456789abcdef0: image, security groups, instance profile, user data that joins
	// the cluster.
	// +required
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^lt-[0-9a-f]{8,17}$')",message="provider.ec2.launchTemplate must be the id of a launch template, such as lt-0123456789abcdef0"
	LaunchTemplate string `json:"launchTemplate"`

	// Version of the launch template: a number, $Latest or $Default.
	// +optional
	// +default="$Default"
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^([1-9][0-9]*|[$]Latest|[$]Default)$')",message="provider.ec2.launchTemplateVersion must be a number from 1 on, $Latest or $Default"
	LaunchTemplateVersion string `json:"launchTemplateVersion,omitempty"`

	// The region, such as eu-central-1.
	// +required
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]+(-[a-z]+)+-[0-9]+$')",message="provider.ec2.region must be the name of a region, such as eu-central-1"
	Region string `json:"region"`

	// The subnets that instances are launched into, in one zone or several.
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=id
	Subnets []EC2Subnet `json:"subnets"`

	// Instance types in order of preference.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +kubebuilder:validation:items:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.all(type, type.matches('^[a-z0-9-]+[.][a-z0-9-]+$'))",message="provider.ec2.instanceTypes must be names of instance types, such as t3.medium"
	InstanceTypes []string `json:"instanceTypes,omitempty"`

	// What instance types must have, in place of their names: of those that have it the cheapest are launched.
	// +optional
	Requirements *EC2Requirements `json:"requirements,omitempty"`

	// How many pods the kubelets of new nodes take, as the user data of the launch template has it: a number for all instance types, or ENI,
	// for as many as the VPC CNI has addresses for on the network interfaces of each type. Absent, 110. It changes no kubelet.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="string(self).matches('^(ENI|[1-9][0-9]{0,3})$')",message="provider.ec2.maxPods must be ENI or a number from 1 to 9999, such as 58"
	MaxPods *intstr.IntOrString `json:"maxPods,omitempty"`

	// URL of the SQS queue that EventBridge sends Spot interruptions and rebalance recommendations to; empty reads none. Each
	// pool needs a queue of its own, as it deletes messages about other instances: of two pools with one queue the younger is rejected.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self == '' || isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHost() != '' && url(self).getQuery().size() == 0 && !self.contains('#') && !self.contains('@')",message="provider.ec2.interruptionQueue must be the URL of a queue, such as https://sqs.eu-central-1.amazonaws.com/123456789012/interruptions"
	InterruptionQueue string `json:"interruptionQueue,omitempty"`

	// Tags of each instance, in addition to those that Foresail identifies its instances by.
	// +optional
	// +kubebuilder:validation:MaxProperties=40
	// +kubebuilder:validation:XValidation:rule="self.all(key, key.size() >= 1 && key.size() <= 128 && self[key].size() <= 256)",message="provider.ec2.tags must have keys of 1 to 128 characters and values of at most 256"
	Tags map[string]string `json:"tags,omitempty"`
}

// Summary implements ProviderSpec.
func (p *EC2Provider) Summary() string {
	types := strings.Join(p.InstanceTypes, ", ")
	if p.Requirements != nil {
		types = p.Requirements.String()
	}
	return fmt.Sprintf("EC2 in %s: %s", p.Region, types)
}

// AWSRegion implements ProviderSpec.
func (p *EC2Provider) AWSRegion() string { return p.Region }

// NodeShapes implements ProviderSpec. The architecture of a named type is known to EC2 alone, and so are types without names.
func (p *EC2Provider) NodeShapes() (zones, instanceTypes []string, labels map[string]string) {
	for _, s := range p.Subnets {
		zones = append(zones, s.Zone)
	}
	labels = map[string]string{"topology.kubernetes.io/region": p.Region}
	if p.Requirements != nil && p.Requirements.Architecture != "" {
		labels["kubernetes.io/arch"] = p.Requirements.Architecture
	}
	return zones, p.InstanceTypes, labels
}

// Queue implements ProviderSpec.
func (p *EC2Provider) Queue() (queue, field string) {
	return p.InterruptionQueue, "ec2.interruptionQueue"
}

// SpotWarning implements ProviderSpec.
func (p *EC2Provider) SpotWarning() string {
	if p.InterruptionQueue != "" {
		return ""
	}
	return "without provider.ec2.interruptionQueue Foresail misses the two-minute warning before EC2 reclaims a Spot instance: its pods are not" +
		" evicted, and its replacement is launched only when the instance is gone. Set provider.ec2.interruptionQueue, or market.spotRatio to 0"
}

// EC2Subnet is a subnet that instances are launched into.
type EC2Subnet struct {
	// The availability zone that it is in, such as eu-central-1a.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]+(-[a-z0-9]+)*$')",message="provider.ec2.subnets[].zone must be the name of an availability zone, such as eu-central-1a"
	Zone string `json:"zone"`

	// Such as subnet-0123456789abcdef0.
	// +required
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^subnet-[0-9a-f]{8,17}$')",message="provider.ec2.subnets[].id must be the id of a subnet, such as subnet-0123456789abcdef0"
	ID string `json:"id"`
}

// SimulatedProvider simulates a cloud.
//
// +kubebuilder:validation:XValidation:rule="self.__namespace__ == oldSelf.__namespace__",message="provider.simulated.namespace must not change, as no pool would manage the instances in the old namespace: delete the WorkerPool, which terminates its nodes unless deletionPolicy is Orphan, and create another",fieldPath=".namespace"
type SimulatedProvider struct {
	// How long an instance takes until its Node exists.
	// +optional
	// +default="30s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="provider.simulated.joinDelay must be a duration of 0s or more, such as 30s"
	JoinDelay *metav1.Duration `json:"joinDelay,omitempty"`

	// The zones that nodes are in.
	// +optional
	// +default=["a","b"]
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.all(zone, zone.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'))",message="provider.simulated.zones must be lowercase letters, digits and -, such as a"
	Zones []string `json:"zones,omitempty"`

	// The allocatable resources of a node. Write fractions as 500m or in quotes, as "0.5".
	// +optional
	// +default={"cpu":"2","memory":"4Gi","pods":"110"}
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="['cpu', 'memory', 'pods'].all(name, name in self)",message="provider.simulated.shape must have cpu, memory and pods"
	Shape map[string]resource.Quantity `json:"shape,omitempty"`

	// Namespace of the ConfigMaps that represent the instances.
	// +optional
	// +default="foresail-simulated"
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="provider.simulated.namespace must be the name of a namespace"
	Namespace string `json:"namespace,omitempty"`
}

// Summary implements ProviderSpec.
func (p *SimulatedProvider) Summary() string {
	return "simulated, in zones " + strings.Join(p.Zones, ", ")
}

// AWSRegion implements ProviderSpec.
func (p *SimulatedProvider) AWSRegion() string { return "" }

// SimulatedInstanceType is the only instance type of SimulatedProvider.
const SimulatedInstanceType = "simulated"

// NodeShapes implements ProviderSpec.
func (p *SimulatedProvider) NodeShapes() (zones, instanceTypes []string, labels map[string]string) {
	return p.Zones, []string{SimulatedInstanceType}, map[string]string{"kubernetes.io/arch": "amd64"}
}

// Queue implements ProviderSpec.
func (p *SimulatedProvider) Queue() (queue, field string) { return "", "" }

// SpotWarning implements ProviderSpec.
func (p *SimulatedProvider) SpotWarning() string { return "" }

// PoolState is where the journal is kept: by default in the status of the WorkerPool. It is immutable: during a change two
// processes could act, each by its own journal.
//
// +kubebuilder:validation:XValidation:rule="has(self.dynamodb) == has(oldSelf.dynamodb)",message="state must not change, as two processes could act by two journals: set deletionPolicy to Orphan, delete the WorkerPool and create it again, and it adopts its instances"
type PoolState struct {
	// In a DynamoDB table, in the region of the instances.
	// +optional
	DynamoDB *DynamoDBState `json:"dynamodb,omitempty"`
}

// DynamoDBState keeps the journal in an existing table.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="state.dynamodb must not change, as two processes could act by two journals: set deletionPolicy to Orphan, delete the WorkerPool and create it again, and it adopts its instances"
type DynamoDBState struct {
	// The name of the table.
	// +required
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9_.-]{3,}$')",message="state.dynamodb.table must be the name of a table: 3 to 255 letters, digits, _, - and ."
	Table string `json:"table"`

	// Name of the table's partition key, a string. The table must have no sort key.
	// +optional
	// +default="clusterId"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	HashKey string `json:"hashKey,omitempty"`

	// The key of the item; absent, the name of the pool. Two clusters that share a table must not share a key.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Key string `json:"key,omitempty"`
}
