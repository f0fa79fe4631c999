package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

func TestCustomMetricsAreOffUnlessAsked(t *testing.T) {
	o := parsedRun(t).adapter.custom
	assert.False(t, o.enabled)
	assert.Empty(t, o.apis(), "nothing of theirs is registered or looked at")
	assert.Len(t, (&customMetricsOptions{enabled: true}).apis(), 2)

	file, err := os.Open("../../manifests/components/custom-metrics/rbac.yaml")
	require.NoError(t, err)
	defer file.Close()
	var role rbacv1.ClusterRole
	require.NoError(t, utilyaml.NewYAMLOrJSONDecoder(file, 4096).Decode(&role))
	assert.Equal(t, role.Name, o.owner, "the default is the ClusterRole of the manifests")
}

func TestFlagsOfCustomMetricsAreChecked(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string // "" accepts
	}{
		{[]string{"--custom-metrics"}, ""},
		{[]string{"--custom-metrics", "--custom-metrics-owner="}, ""},
		{[]string{"--custom-metrics", "--apiservice=false"}, ""},
		{[]string{"--custom-metrics", "--custom-metrics-owner=a/b"}, `--custom-metrics-owner: "a/b": must be the name of a ClusterRole, or empty`},
		{[]string{"--custom-metrics-owner=a"}, `--custom-metrics-owner: "a": must be left out without --custom-metrics`},
		{[]string{"--enable=nodepool", "--custom-metrics"}, `--custom-metrics: "true": must be left out unless --enable has adapter`},
		{[]string{"--enable=nodepool", "--custom-metrics=false"}, ""},
	} {
		o := parsedRun(t, append([]string{"--leader-elect=false", "--apiservice-namespace=foresail-system"}, c.args...)...)
		if c.want == "" {
			assert.NoError(t, o.validate(), c.args)
		} else {
			assert.ErrorContains(t, o.validate(), c.want, c.args)
		}
	}
}
