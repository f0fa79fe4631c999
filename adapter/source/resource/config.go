package resource

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/foresail/foresail/pipeline"
)

// Config selects what is read of each pod.
type Config struct {
	// Name of the resource: cpu (in cores) or memory (the working set, in bytes). Metrics servers have no others.
	Name string
	// Container is the container that is read. "" = the sum of all.
	Container string
	Interval  time.Duration
}

// sample returns the usage in a PodMetrics, in cores or bytes, at the end of its window. The sink rejects times in the
// future.
func (c *Config) sample(m *v1beta1.PodMetrics) (pipeline.Sample, error) {
	if m.Timestamp.IsZero() {
		return pipeline.Sample{}, errors.New("its PodMetrics has no timestamp")
	}
	counted, err := c.counted(m.Containers)
	if err != nil {
		return pipeline.Sample{}, err
	}
	sum := 0.0
	for i := range counted {
		usage, ok := counted[i].Usage[corev1.ResourceName(c.Name)]
		switch {
		case !ok: // the sum of the others would be a part of the load, not the load
			return pipeline.Sample{}, fmt.Errorf("its container %q has no usage of %s", counted[i].Name, c.Name)
		case usage.Sign() < 0:
			return pipeline.Sample{},
				fmt.Errorf("its container %q has a usage of %s %s: must be 0 or more", counted[i].Name, usage.String(),
					c.Name)
		}
		sum += usage.AsApproximateFloat64()
	}
	return pipeline.Sample{T: m.Timestamp.UnixMilli(), V: sum}, nil
}

// counted returns the containers that are read.
func (c *Config) counted(all []v1beta1.ContainerMetrics) ([]v1beta1.ContainerMetrics, error) {
	if len(all) == 0 {
		return nil, errors.New("its PodMetrics has no containers")
	}
	if c.Container == "" {
		return all, nil
	}
	i := slices.IndexFunc(all, func(m v1beta1.ContainerMetrics) bool { return m.Name == c.Container })
	if i < 0 {
		var names []string
		for _, m := range all {
			names = append(names, m.Name)
		}
		slices.Sort(names)
		return nil, fmt.Errorf("it has no container %q, only %s", c.Container, strings.Join(names, ", "))
	}
	return all[i : i+1], nil
}
