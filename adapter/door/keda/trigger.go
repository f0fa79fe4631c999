package keda

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/foresail/foresail/adapter/door/keda/externalscaler"
	"github.com/foresail/foresail/adapter/serving"
)

// Keys of the metadata of a trigger.
const (
	keyPredictedMetric = "predictedMetric"
	keyMetric          = "metric"
	keyActivation      = "activation"
)

const (
	// acceptKeys is the answer to any other key.
	acceptKeys = "left out: a trigger has " + keyPredictedMetric + ", " + keyMetric + " and " + keyActivation +
		", and scalerAddress, enableTLS and unsafeSsl, which KEDA reads"
	// fromEnv is the end of keys for which KEDA sends the value of an environment variable of the
	// target. It sends nothing for a variable without a value, and a default would take its place
	// without an error.
	fromEnv = "FromEnv"
)

// reasonInvalidTrigger is the reason of an error about a request that no ScaledObject should make.
const reasonInvalidTrigger = "InvalidTrigger"

// trigger holds the parameters of one trigger of a ScaledObject.
type trigger struct {
	predicted  types.NamespacedName // the PredictedMetric
	metric     string
	activation float64 // it is active above this value
}

// triggerOf reads a trigger, or returns an *serving.Error.
func triggerOf(ref *externalscaler.ScaledObjectRef) (trigger, error) {
	t := trigger{predicted: types.NamespacedName{Namespace: ref.GetNamespace(), Name: ref.GetName()},
		metric: serving.LoadTotal}
	if len(validation.IsDNS1123Label(ref.GetNamespace())) > 0 {
		return t, invalid("namespace", ref.GetNamespace(), "that of the ScaledObject")
	}
	metadata := ref.GetScalerMetadata()
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		if err := t.set(key, metadata[key]); err != nil {
			return t, err
		}
	}
	if len(validation.IsDNS1123Subdomain(t.predicted.Name)) > 0 {
		return t, invalid("metadata."+keyPredictedMetric, t.predicted.Name,
			"the name of a PredictedMetric in the namespace of the ScaledObject")
	}
	return t, nil
}

// isActive reports whether a value in milli-units activates the trigger.
func (t *trigger) isActive(milli int64) bool { return float64(milli)/1000 > t.activation }

// set takes one key.
func (t *trigger) set(key, value string) error {
	field := "metadata." + abbreviate(key)
	switch {
	case key == keyPredictedMetric:
		t.predicted.Name = value
	case key == keyMetric:
		t.metric = value
		return checkMetric(field, value)
	case key == keyActivation:
		activation, err := strconv.ParseFloat(value, 64)
		if err != nil || !(activation >= 0 && activation <= math.MaxFloat64) {
			return invalid(field, value, "a number, 0 or more")
		}
		t.activation = activation
	case slices.Contains([]string{"scalerAddress", "enableTLS", "unsafeSsl"}, key):
	case strings.HasSuffix(key, fromEnv):
		return invalid(field, value, "left out: write the value itself, as "+strings.TrimSuffix(abbreviate(key),
			fromEnv))
	case slices.Contains([]string{"caCert", "tlsClientCert", "tlsClientKey"}, key):
		return invalid(field, "...",
			"left out, as KEDA does not read it there: it belongs into the TriggerAuthentication of the trigger")
	default:
		return invalid(field, value, acceptKeys)
	}
	return nil
}

func checkMetric(field, value string) error {
	const accept = serving.LoadTotal + " or " + serving.Replicas
	switch value {
	case serving.LoadTotal, serving.Replicas:
		return nil
	case serving.Load:
		return invalid(field, value,
			accept+": "+serving.Load+" needs a target of type Value, which a scaler cannot ask for")
	default:
		return invalid(field, value, accept)
	}
}

// invalid is the error of a request that will not make sense later either.
func invalid(field, value, accept string) error {
	return &serving.Error{
		Class: serving.Invalid, Reason: reasonInvalidTrigger,
		Message: fmt.Sprintf("%s: %q: must be %s", field, abbreviate(value), accept),
	}
}

// abbreviate bounds how much of a client's input is sent back.
func abbreviate(s string) string {
	const most = 100
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}
