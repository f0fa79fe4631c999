package v1alpha1

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
)

// EC2Requirements choose instance types by what they have, much as EC2's own InstanceRequirements do.
type EC2Requirements struct {
	// Virtual CPUs.
	// +required
	VCPU EC2CPURange `json:"vCPU"`

	// Memory of the instance. Pods can use less of it.
	// +required
	Memory EC2MemoryRange `json:"memory"`

	// Architecture of the launch template's image: amd64 or arm64.
	// +optional
	// +default="amd64"
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self in ['amd64', 'arm64']",message="provider.ec2.requirements.architecture must be amd64 or arm64"
	Architecture string `json:"architecture,omitempty"`

	// Types or families, such as m5.large, m5.* or c*; absent allows all.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:MinItems=1
	// +listType=set
	// +kubebuilder:validation:items:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.all(type, type.matches('^[a-z0-9.*-]+$'))",message="provider.ec2.requirements.allowedTypes must be names of instance types, in which * stands for any characters, such as m5.*"
	AllowedTypes []string `json:"allowedTypes,omitempty"`

	// Types or families that are left out, such as m5.large, m5.* or c*.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:MinItems=1
	// +listType=set
	// +kubebuilder:validation:items:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.all(type, type.matches('^[a-z0-9.*-]+$'))",message="provider.ec2.requirements.excludedTypes must be names of instance types, in which * stands for any characters, such as m5.*"
	ExcludedTypes []string `json:"excludedTypes,omitempty"`

	// The lowest generation, such as 5 for m5, c5a and newer; absent, any. Types whose name has no generation are left out with it.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 100",message="provider.ec2.requirements.minGeneration must be from 1 to 100, such as 5"
	MinGeneration *int32 `json:"minGeneration,omitempty"`

	// Kinds of types that are left out unless they are named here: Accelerated (with GPUs, FPGAs, or chips for inference,
	// training or media), BareMetal (not virtualised), Burstable (of burstable CPU performance, such as t3).
	// +optional
	// +kubebuilder:validation:MaxItems=3
	// +listType=set
	Include []EC2Kind `json:"include,omitempty"`
}

// EC2Kind is a kind of instance types that a pool has only if its spec names the kind.
//
// +kubebuilder:validation:Enum=Accelerated;BareMetal;Burstable
type EC2Kind string

// The kinds.
const (
	EC2Accelerated EC2Kind = "Accelerated"
	EC2BareMetal   EC2Kind = "BareMetal"
	EC2Burstable   EC2Kind = "Burstable"
)

// EC2CPURange is a number of virtual CPUs.
//
// +kubebuilder:validation:XValidation:rule="!has(self.max) || self.min <= self.max",message="provider.ec2.requirements.vCPU.max must be at least min",fieldPath=".max"
type EC2CPURange struct {
	// The least. The cheapest type that meets the requirements is launched where no pod needs another.
	// +required
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 1024",message="provider.ec2.requirements.vCPU.min must be from 1 to 1024"
	Min int32 `json:"min"`

	// The most; absent, any.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 1024",message="provider.ec2.requirements.vCPU.max must be from 1 to 1024"
	Max *int32 `json:"max,omitempty"`
}

// EC2MemoryRange is an amount of memory.
//
// +kubebuilder:validation:XValidation:rule="!has(self.max) || quantity(string(self.min)).compareTo(quantity(string(self.max))) <= 0",message="provider.ec2.requirements.memory.max must be at least min",fieldPath=".max"
type EC2MemoryRange struct {
	// The least, such as 4Gi. Write a fraction as 500m or in quotes, as "0.5".
	// +required
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('1Mi')) >= 0",message="provider.ec2.requirements.memory.min must be a quantity of at least 1Mi, such as 4Gi"
	Min resource.Quantity `json:"min"`

	// The most, such as 64Gi; absent, any. Write a fraction as 500m or in quotes, as "0.5".
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('1Mi')) >= 0",message="provider.ec2.requirements.memory.max must be a quantity of at least 1Mi, such as 64Gi"
	Max *resource.Quantity `json:"max,omitempty"`
}

// String says what types must have, in a few words.
func (r *EC2Requirements) String() string {
	vCPU, memory := fmt.Sprintf("%d vCPU or more", r.VCPU.Min), r.Memory.Min.String()+" or more"
	if r.VCPU.Max != nil {
		vCPU = fmt.Sprintf("%d to %d vCPU", r.VCPU.Min, *r.VCPU.Max)
	}
	if r.Memory.Max != nil {
		memory = r.Memory.Min.String() + " to " + r.Memory.Max.String()
	}
	return fmt.Sprintf("types of %s with %s, %s", r.Architecture, vCPU, memory)
}
