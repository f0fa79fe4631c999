package simulated

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/provider"
)

// Labels of instances. Actions and slots are in the data too: not every name is a valid label value.
const (
	poolLabel   = "simulated.foresail.dev/pool"
	actionLabel = "simulated.foresail.dev/action"
	slotLabel   = "simulated.foresail.dev/slot"
	dataKey     = "instance"
)

// Annotations of an instance's ConfigMap that take effect in the next step.
const (
	// AnnotationNeverJoin keeps the instance from joining: "true".
	AnnotationNeverJoin = "simulated.foresail.dev/never-join"
	// AnnotationTerminate terminates the instance, like a user in the cloud's console: "true".
	AnnotationTerminate = "simulated.foresail.dev/terminate"
	// AnnotationVanish terminates the instance and deletes its Node soon after: "true".
	AnnotationVanish = "simulated.foresail.dev/vanish"
	// AnnotationInterrupt has the cloud reclaim the instance after a time, with a notice now: "2m".
	AnnotationInterrupt = "simulated.foresail.dev/interrupt-after"
	// AnnotationRebalance has the cloud recommend a rebalance: "true".
	AnnotationRebalance = "simulated.foresail.dev/rebalance"
)

// shutdown is how long an ending instance is still listed.
const shutdown = 5 * time.Second

// terminated is the last state of an instance. It is not visible outside.
const terminated fleet.InstanceState = "Terminated"

// instance is an instance as its ConfigMap stores it.
type instance struct {
	Action string `json:"action"`
	Slot   int    `json:"slot"`
	Token  string `json:"token"`
	fleet.Placement
	Types      []string            `json:"types,omitempty"` // of the launch, if it had alternatives
	Shape      corev1.ResourceList `json:"shape"`
	State      fleet.InstanceState `json:"state"`
	Launched   time.Time           `json:"launched"`
	JoinsAt    time.Time           `json:"joinsAt,omitzero"` // zero = never
	JoinFailed bool                `json:"joinFailed,omitempty"`
	Joined     bool                `json:"joined,omitempty"`     // its Node was created
	Stopped    bool                `json:"stopped,omitempty"`    // its kubelet was stopped
	Vanished   bool                `json:"vanished,omitempty"`   // its Node is deleted too
	EndsAt     time.Time           `json:"endsAt,omitzero"`      // of an ending or terminated instance
	TakenAt    time.Time           `json:"takenAt,omitzero"`     // when the cloud reclaims it
	Advised    bool                `json:"advised,omitempty"`    // the cloud recommends a rebalance
	NoticeDone time.Time           `json:"noticeDone,omitzero"`  // TakenAt of the last notice that is done
	AdviceDone bool                `json:"adviceDone,omitempty"` // the recommendation is done

	meta metav1.ObjectMeta
}

// newInstance returns the nth instance of a call.
func newInstance(l provider.Launch, n int, pool string) *instance {
	i := &instance{Action: l.Action, Slot: l.Slot, Token: l.Token, Placement: l.Placement, State: fleet.Pending}
	if len(l.Alternatives) > 0 {
		i.Types = append([]string{l.InstanceType}, l.Alternatives...)
	}
	i.meta.Name = idOf(l.Token, n)
	i.meta.Labels = map[string]string{poolLabel: pool, slotLabel: strconv.Itoa(l.Slot)}
	if len(validation.IsValidLabelValue(l.Action)) == 0 {
		i.meta.Labels[actionLabel] = l.Action
	}
	return i
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

// object returns the ConfigMap that stores the instance.
func (i *instance) object(namespace string) *corev1.ConfigMap {
	object := &corev1.ConfigMap{ObjectMeta: i.meta, Data: map[string]string{dataKey: i.encoded()}}
	object.Namespace = namespace
	return object
}

// encoded returns the instance as it is stored.
func (i *instance) encoded() string {
	data, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("encode an instance: %v", err)) // every field has a JSON form
	}
	return string(data)
}

func (i *instance) id() string { return i.meta.Name }

func (i *instance) pool() string { return i.meta.Labels[poolLabel] }

func (i *instance) providerID() string { return "simulated:///" + i.Zone + "/" + i.id() }

// nodeName returns the name of the instance's Node. It has at most 63 characters, as it is a label value too.
func (i *instance) nodeName() string {
	pool := strings.Trim(i.pool()[:min(len(i.pool()), 52)], ".-")
	return pool + "-" + strings.TrimPrefix(i.id(), "i-")[:10]
}

// end begins the end of the instance, which takes as long as its shutdown.
func (i *instance) end(now time.Time, shutdown time.Duration) {
	i.State, i.EndsAt = fleet.Leaving, now.Add(shutdown)
}

// ending reports whether the instance has stopped or is about to.
func (i *instance) ending() bool { return i.State == fleet.Leaving || i.State == terminated }

func (i *instance) sameLaunch(other *instance) bool {
	at := other.Placement
	if len(i.Types) > 0 {
		at.InstanceType = i.InstanceType // any of its types
	}
	return i.pool() == other.pool() && i.Action == other.Action && i.Slot == other.Slot && i.Token == other.Token &&
		i.Placement == at && slices.Equal(i.Types, other.Types)
}

// outdated returns how the instance differs from a new one, "" if it does not.
func (i *instance) outdated(zones []string, shape corev1.ResourceList) string {
	switch {
	case !equality.Semantic.DeepEqual(i.Shape, shape):
		return fmt.Sprintf("it was launched with %s, and new ones have %s", describe(i.Shape), describe(shape))
	case !slices.Contains(zones, i.Zone):
		return fmt.Sprintf("its zone %s is not one of the pool's any more", i.Zone)
	}
	return ""
}

// describe returns a shape as text, such as cpu 2, memory 4Gi.
func describe(shape corev1.ResourceList) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(shape)) {
		quantity := shape[name]
		parts = append(parts, string(name)+" "+quantity.String())
	}
	return strings.Join(parts, ", ")
}

// public returns the instance as the cloud reports it.
func (i *instance) public() fleet.Instance {
	state := i.State
	if state == terminated {
		state = fleet.Leaving
	}
	return fleet.Instance{
		ID: i.id(), ProviderID: i.providerID(), Action: i.Action, Slot: i.Slot, Token: i.Token, Placement: i.Placement,
		State: state, Launched: i.Launched, JoinFailed: i.JoinFailed, Addresses: []string{i.nodeName()},
	}
}

// obey applies the annotations of the instance, and reclaims it when its time has come.
func (i *instance) obey(now time.Time) error {
	if i.ending() {
		return nil
	}
	annotations := i.meta.Annotations
	if text := annotations[AnnotationInterrupt]; text != "" && i.TakenAt.IsZero() {
		after, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("annotation %s: %q: must be a duration, such as 2m", AnnotationInterrupt, text)
		}
		i.TakenAt = now.Add(after)
	}
	i.Advised = i.Advised || annotations[AnnotationRebalance] == "true"
	if annotations[AnnotationNeverJoin] == "true" && !i.Joined {
		i.JoinsAt = time.Time{}
	}
	taken := !i.TakenAt.IsZero() && !now.Before(i.TakenAt)
	switch {
	case annotations[AnnotationVanish] == "true":
		i.Vanished = true
		i.end(now, 0)
	case taken, annotations[AnnotationTerminate] == "true":
		i.end(now, shutdown)
	}
	return nil
}

// messages returns the cloud's messages about the instance that are not done.
func (i *instance) messages() []provider.Message {
	var out []provider.Message
	if i.State == terminated {
		return nil
	}
	if !i.TakenAt.IsZero() && !i.TakenAt.Equal(i.NoticeDone) {
		out = append(out, provider.Message{InstanceID: i.id(), Kind: provider.MessageInterruption, Deadline: i.TakenAt})
	}
	if i.Advised && !i.AdviceDone {
		out = append(out, provider.Message{InstanceID: i.id(), Kind: provider.MessageRebalance})
	}
	return out
}

// messageDone records that a message is done.
func (i *instance) messageDone(m provider.Message) {
	if m.Kind == provider.MessageRebalance {
		i.AdviceDone = true
	} else {
		i.NoticeDone = m.Deadline
	}
}
