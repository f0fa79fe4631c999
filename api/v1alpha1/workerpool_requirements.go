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

	// Types that EC2 calls previous generation, such as m4: Excluded, Included or Required.
	// +optional
	// +default="Included"
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self in ['Excluded', 'Included', 'Required']",message="provider.ec2.requirements.previousGeneration must be Excluded, Included or Required"
	PreviousGeneration EC2Inclusion `json:"previousGeneration,omitempty"`

	// Types whose CPU performance is burstable, such as t3: Excluded, Included or Required.
	// +optional
	// +default="Excluded"
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self in ['Excluded', 'Included', 'Required']",message="provider.ec2.requirements.burstablePerformance must be Excluded, Included or Required"
	BurstablePerformance EC2Inclusion `json:"burstablePerformance,omitempty"`

	// Types with GPUs, FPGAs, or chips for inference, training or media: Excluded, Included or Required.
	// +optional
	// +default="Excluded"
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self in ['Excluded', 'Included', 'Required']",message="provider.ec2.requirements.accelerators must be Excluded, Included or Required"
	Accelerators EC2Inclusion `json:"accelerators,omitempty"`

	// Types that are not virtualised: Excluded, Included or Required.
	// +optional
	// +default="Excluded"
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self in ['Excluded', 'Included', 'Required']",message="provider.ec2.requirements.bareMetal must be Excluded, Included or Required"
	BareMetal EC2Inclusion `json:"bareMetal,omitempty"`
}

// EC2Inclusion says whether instance types with a property are among those of a pool.
type EC2Inclusion string

// The values.
const (
	EC2Excluded EC2Inclusion = "Excluded"
	EC2Included EC2Inclusion = "Included"
	EC2Required EC2Inclusion = "Required"
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
