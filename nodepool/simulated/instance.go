package simulated

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/foresail/foresail/nodepool/provider"
)

// Labels of instances. Actions and slots are also in the data: not every name can be the value of a label.
const (
	poolLabel   = "simulated.foresail.dev/pool"
	actionLabel = "simulated.foresail.dev/action"
	slotLabel   = "simulated.foresail.dev/slot"
	dataKey     = "instance"
)

// terminated is the last state of an instance. It is never told.
const terminated fleet.InstanceState = "Terminated"

// instance is an instance as its ConfigMap keeps it.
type instance struct {
	Action string `json:"action"`
	Slot   int    `json:"slot"`
	Token  string `json:"token"`
	fleet.Placement
	Types      []string            `json:"types,omitempty"` // that the launch named, if these were several
	Shape      corev1.ResourceList `json:"shape,omitempty"` // absent from instances of earlier releases
	State      fleet.InstanceState `json:"state"`
	Launched   time.Time           `json:"launched"`
	JoinsAt    time.Time           `json:"joinsAt,omitzero"` // zero = never
	JoinFailed bool                `json:"joinFailed,omitempty"`
	Joined     bool                `json:"joined,omitempty"`     // its Node has been made
	Stopped    bool                `json:"stopped,omitempty"`    // its kubelet has been stopped
	Vanished   bool                `json:"vanished,omitempty"`   // its Node goes with it
	EndsAt     time.Time           `json:"endsAt,omitzero"`      // of one that leaves or has been terminated
	TakenAt    time.Time           `json:"takenAt,omitzero"`     // the cloud takes it back
	Advised    bool                `json:"advised,omitempty"`    // the cloud advises to leave it
	NoticeDone time.Time           `json:"noticeDone,omitzero"`  // TakenAt of the last notice that was done with
	AdviceDone bool                `json:"adviceDone,omitempty"` // the advice was done with

	meta metav1.ObjectMeta
}

// newInstance returns the nth instance of a call as it is launched.
func (c *Cloud) newInstance(l provider.Launch, n int, f faults) *instance {
	i := &instance{
		Action: l.Action, Slot: l.Slot, Token: l.Token, Placement: l.Placement, Shape: c.shape, State: fleet.Pending, Launched: c.options.Now(),
	}
	if len(l.Alternatives) > 0 {
		i.Types = append([]string{l.InstanceType}, l.Alternatives...)
	}
	i.meta.Name = idOf(l.Token, n)
	i.meta.Labels = map[string]string{poolLabel: c.options.Pool, slotLabel: strconv.Itoa(l.Slot)}
	if len(validation.IsValidLabelValue(l.Action)) == 0 {
		i.meta.Labels[actionLabel] = l.Action
	}
	if !f.neverJoin {
		i.JoinsAt = i.Launched.Add(c.delayOf(i.id()))
	}
	return i
}

// delayOf is how long an instance takes to join: always the same for one id and seed.
func (c *Cloud) delayOf(id string) time.Duration {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(id)) // never fails
	random := rand.New(rand.NewPCG(c.options.Seed, hash.Sum64()))
	return time.Duration(float64(c.joinDelay) * (1 + c.options.Jitter*(2*random.Float64()-1)))
}

// idOf returns the id of the nth instance that a token launches.
func idOf(token string, n int) string {
	if n > 0 {
		token = fmt.Sprintf("%s/%d", token, n)
	}
	sum := sha256.Sum256([]byte(token))
	return "i-" + hex.EncodeToString(sum[:])[:17]
}

func instanceOf(object *corev1.ConfigMap) (*instance, error) {
	i := &instance{meta: object.ObjectMeta}
	if err := json.Unmarshal([]byte(object.Data[dataKey]), i); err != nil {
		return nil, fmt.Errorf("ConfigMap %s/%s: data.%s: %w", object.Namespace, object.Name, dataKey, err)
	}
	return i, nil
}

// object is the ConfigMap that keeps the instance.
func (i *instance) object(namespace string) *corev1.ConfigMap {
	object := &corev1.ConfigMap{ObjectMeta: i.meta, Data: map[string]string{dataKey: i.encoded()}}
	object.Namespace = namespace
	return object
}

// encoded is the instance as it is stored.
func (i *instance) encoded() string {
	data, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("encode an instance: %v", err)) // it holds nothing that has no form in JSON
	}
	return string(data)
}

func (i *instance) id() string { return i.meta.Name }

func (i *instance) pool() string { return i.meta.Labels[poolLabel] }

func (i *instance) providerID() string { return "simulated:///" + i.Zone + "/" + i.id() }

// leave begins the end of an instance, which takes as long as its shutdown.
func (i *instance) leave(now time.Time, shutdown time.Duration) {
	i.State, i.EndsAt = fleet.Leaving, now.Add(shutdown)
}

// gone tells whether the instance has stopped or is about to.
func (i *instance) gone() bool { return i.State == fleet.Leaving || i.State == terminated }

func (i *instance) sameLaunch(other *instance) bool {
	at := other.Placement
	if len(i.Types) > 0 {
		at.InstanceType = i.InstanceType // whichever was chosen
	}
	return i.pool() == other.pool() && i.Action == other.Action && i.Slot == other.Slot && i.Token == other.Token && i.Placement == at &&
		slices.Equal(i.Types, other.Types)
}

// outdated returns why an instance is not what a new one would be, "" if it is or if that is not known.
func (i *instance) outdated(zones []string, shape corev1.ResourceList) string {
	switch {
	case len(i.Shape) > 0 && !equality.Semantic.DeepEqual(i.Shape, shape):
		return fmt.Sprintf("it was launched with %s, and new ones have %s", describe(i.Shape), describe(shape))
	case !slices.Contains(zones, i.Zone):
		return fmt.Sprintf("its zone %s is not one of the pool's any more", i.Zone)
	}
	return ""
}

// describe returns a shape as people read it, such as cpu 2, memory 4Gi.
func describe(shape corev1.ResourceList) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(shape)) {
		quantity := shape[name]
		parts = append(parts, string(name)+" "+quantity.String())
	}
	return strings.Join(parts, ", ")
}

// told is the instance as others see it.
func (i *instance) told() fleet.Instance {
	state := i.State
	if state == terminated {
		state = fleet.Leaving
	}
	return fleet.Instance{
		ID: i.id(), ProviderID: i.providerID(), Action: i.Action, Slot: i.Slot, Token: i.Token, Placement: i.Placement,
		State: state, Launched: i.Launched, JoinFailed: i.JoinFailed, Addresses: []string{i.nodeName()},
	}
}
