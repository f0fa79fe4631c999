package resource

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// MinInterval is the shortest interval at which metrics.k8s.io can be read. Servers of it have new values every 15 s or
// less often; a shorter interval finds them earlier.
const MinInterval = time.Second

// Config says what is read of each pod.
type Config struct {
	// Name of the resource: cpu (in cores) or memory (the working set, in bytes). No other is served by
	// metrics-server or its substitutes.
	Name string
	// Container is the one whose usage counts. "" = the sum of all.
	Container string
	Interval  time.Duration
}

// validate reports all that is wrong with c.
func (c *Config) validate() error {
	var problems []error
	refuse := func(field string, value any, accepted string) {
		problems = append(problems, fmt.Errorf("%s: %q: must be %s", field, value, accepted))
	}
	if c.Name != string(corev1.ResourceCPU) && c.Name != string(corev1.ResourceMemory) {
		refuse("name", c.Name, "cpu or memory")
	}
	if c.Container != "" && len(validation.IsDNS1123Label(c.Container)) > 0 {
		refuse("container", c.Container, "the name of a container, or empty for the sum of all")
	}
	if c.Interval < MinInterval {
		refuse("interval", c.Interval, "at least "+MinInterval.String())
	}
	return errors.Join(problems...)
}
