package nodequery

import (
	"testing"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/pipeline"
)

func TestMatcher(t *testing.T) {
	address := func(kind corev1.NodeAddressType, a string) corev1.NodeAddress {
		return corev1.NodeAddress{Type: kind, Address: a}
	}
	m := NewMatcher([]Node{
		{Name: "a", UID: "1", Addresses: []corev1.NodeAddress{
			address(corev1.NodeInternalIP, "10.0.0.1"), address(corev1.NodeInternalIP, "fd00::1"),
			address(corev1.NodeHostName, "a.internal"), address(corev1.NodeHostName, "a.internal"),
			address(corev1.NodeExternalIP, "192.168.0.1"),
		}},
		{Name: "b", UID: "2", Addresses: []corev1.NodeAddress{address(corev1.NodeExternalIP, "192.168.0.1"),
			address(corev1.NodeHostName, "a")}},
		{Name: "c", UID: "3", Addresses: []corev1.NodeAddress{address(corev1.NodeExternalIP, "192.168.0.1")}},
	})
	for label, want := range map[string]string{
		"a": "a", "b": "b", "a:9100": "a", "10.0.0.1": "a", "10.0.0.1:9100": "a", "[fd00::1]:9100": "a", "fd00::1": "a",
		"a.internal": "a", "a.internal:10250": "a", "192.168.0.1": "", "192.168.0.1:9100": "", "10.0.0.10:9100": "",
		"aa": "", "": "", ":9100": "",
	} {
		got := ""
		if n := m.Find(label); n != nil {
			got = n.Name
		}
		assert.Equal(t, want, got, label)
	}
}

func TestSort(t *testing.T) {
	m := NewMatcher([]Node{{Name: "a", UID: "1"}, {Name: "b", UID: "2"}})
	of := func(node, job string) Line {
		return Line{Labels: model.Metric{"node": model.LabelValue(node), "job": model.LabelValue(job)}}
	}
	byNode, strange := m.Sort([]Line{of("a", "x"), of("c", "x"), of("a:1", "y"), {Labels: model.Metric{"job": "b"}},
		of("b", "x")}, "node")
	assert.Equal(t, map[string][]Line{"a/1": {of("a", "x"), of("a:1", "y")}, "b/2": {of("b", "x")}}, byNode)
	assert.Equal(t, []Line{of("c", "x"), {Labels: model.Metric{"job": "b"}}}, strange)
}

func TestJoin(t *testing.T) {
	line := func(job string, at ...int64) Line {
		l := Line{Labels: model.Metric{"job": model.LabelValue(job), "node": "a"}}
		for _, t := range at {
			l.Samples = append(l.Samples, pipeline.Sample{T: t, V: float64(t)})
		}
		return l
	}
	got, err := Join([]Line{line("b", 3, 4), line("c"), line("a", 1, 2)})
	require.NoError(t, err)
	assert.Equal(t, line("", 1, 2, 3, 4).Samples, got)
	got, err = Join([]Line{line("b")})
	require.NoError(t, err)
	assert.Empty(t, got)
	for name, lines := range map[string][]Line{
		"the same time": {line("a", 1, 2), line("b", 2, 3)},
		"within":        {line("a", 1, 5), line("b", 2, 3)},
	} {
		_, err = Join(lines)
		assert.EqualError(t, err, `{job="a", node="a"} and {job="b", node="a"} at once: must be one series`, name)
	}
}

func TestFloor(t *testing.T) {
	for at, want := range map[int64]int64{0: 0, 1: 0, 9: 0, 10: 10, 19: 10, -1: -10, -10: -10, -11: -20} {
		assert.Equal(t, want, Floor(at, 10), at)
	}
}
