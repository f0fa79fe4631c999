package prometheus

import (
	"fmt"
	mathrand "math/rand/v2"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
)

func TestPodNames(t *testing.T) {
	for _, c := range []struct {
		kind, name string
		own, other []string
	}{
		{"Deployment.apps", "web", []string{"web-7d4b9f6c8-abcde"[:14] + "x2kzl", "web-5c689d88bb-4tqxz"}, []string{
			"web-api-7d4b9f6c8-x2kzl", // the Deployment web-api
			"web-29384756-x2kzl",      // the CronJob web
			"web-cache-x2kzl",         // the DaemonSet web-cache
			"web-0", "web", "web-7d4b9f6c8", "aweb-7d4b9f6c8-x2kzl", "web-7d4b9f6c8-x2kzl-debug",
		}},
		{"Deployment.apps", "a.b", []string{"a.b-7d4b9f6c8-x2kzl"}, []string{"a-b-7d4b9f6c8-x2kzl"}},
		{"Rollout.argoproj.io", "web", []string{"web-7d4b9f6c8-x2kzl"}, []string{"web-0"}},
		{"ReplicaSet.apps", "web", []string{"web-x2kzl"}, []string{"web-7d4b9f6c8-x2kzl", "web-abcde"}},
		{"StatefulSet.apps", "db", []string{"db-0", "db-17"}, []string{"db-x", "db-0-1", "db-"}},
	} {
		form, ok := podNames(schema.ParseGroupKind(c.kind), c.name)
		require.True(t, ok, c.kind)
		is := regexp.MustCompile("^(?:" + form + ")$")
		for _, name := range c.own {
			assert.True(t, is.MatchString(name), "%s %s: %s", c.kind, c.name, name)
		}
		for _, name := range c.other {
			assert.False(t, is.MatchString(name), "%s %s: %s", c.kind, c.name, name)
		}
	}
	_, ok := podNames(schema.GroupKind{Group: "example.com", Kind: "Game"}, "web")
	assert.False(t, ok)
}

// TestPodNamesAsKubernetesMakesThem: names of Deployments' pods are made as the controllers make them, of any hash.
func TestPodNamesAsKubernetesMakesThem(t *testing.T) {
	form, _ := podNames(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "web")
	is := regexp.MustCompile("^(?:" + form + ")$")
	r := mathrand.New(mathrand.NewPCG(1, 2))
	for range 1000 {
		hash := 100_000 + r.Uint32N(1<<32-1-100_000)
		name := "web-" + rand.SafeEncodeString(fmt.Sprint(hash)) + "-" + rand.String(5)
		require.True(t, is.MatchString(name), name)
	}
}
