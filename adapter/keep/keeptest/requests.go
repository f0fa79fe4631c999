package keeptest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/adapter/keep"
)

// Requests tests what a Keeper reads and writes, how often, and what it does about requests that fail.
func Requests(t *testing.T, s Subject) {
	run(t, s, map[string]func(*testing.T, Subject){
		"reads nothing without the field":    testReadsNothingWithoutTheField,
		"reads only its namespaces":          testNamespaces,
		"bounds the requests of a namespace": testTurns,
		"reports requests that fail":         testRequestsThatFail,
		"reports a deletion that fails":      testDeletionThatFails,
	})
}

func testReadsNothingWithoutTheField(t *testing.T, s Subject) {
	pm := s.Checkout()
	s.Request(&pm.Spec, false)
	pm.Spec.MaxReplicas = nil
	s.Play(t, []client.Object{pm, s.Foreign("checkout", "checkout")}, func(f *Fixture) {
		f.Lead()
		f.Pass()
		assert.Equal(f, "none", f.Reports("checkout"))
		assert.Equal(f, []string{"list *v1alpha1.PredictedMetricList"}, slices.Compact(f.requests))
	})
}

func testNamespaces(t *testing.T, s Subject) {
	s.Play(t, []client.Object{s.Checkout(), s.Foreign("by-hand", "checkout")}, func(f *Fixture) {
		f.Namespaces = []string{"shop", "office"}
		f.Lead()
		f.Pass()
		assert.Equal(f, "False "+f.Contested, f.Reports("checkout"))
		assert.Equal(f, map[string]bool{"shop": true, "office": true}, f.listed)
	})
}

// testTurns: a namespace gets its share of the requests of a check, so that another one waits for no more than these.
func testTurns(t *testing.T, s Subject) {
	var objects []client.Object
	for i := range 3 * keep.TurnsPerCheck {
		name := fmt.Sprintf("m-%d", i)
		objects = append(objects, s.NewMetric(name, name, types.UID(name), time.Hour))
	}
	other := s.NewMetric("other", "other", "other", time.Hour)
	other.Namespace = "office"
	s.Play(t, append(objects, other), func(f *Fixture) {
		f.Lead()
		f.WriteStatus() // Pending
		f.Check()       // it starts to watch
		f.Check()
		wrote := f.Wrote()
		assert.Len(f, wrote, keep.TurnsPerCheck+1)
		assert.Contains(f, wrote, "create other")
		f.Check()
		f.Check()
		assert.Len(f, f.Wrote(), 2*keep.TurnsPerCheck)
	})
}

func testRequestsThatFail(t *testing.T, s Subject) {
	WithoutErrorHandlers(t)
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "checkout", errors.New("not granted"))
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Thing"}, "checkout", nil)
	ending := apierrors.NewInternalError(errors.New("shutting down"))
	for name, c := range map[string]struct {
		verb string
		err  error
		want string
	}{
		"no right to create":              {"create", forbidden, "False Forbidden"},
		"no right to list":                {"list " + s.List, forbidden, "False Forbidden"},
		"rejected":                        {"create", invalid, "False RejectedByAPIServer"},
		"an API server that ends":         {"create", ending, "Unknown RequestsFail"},
		"an API server that cannot list":  {"list " + s.List, ending, "Unknown RequestsFail"},
		"an object that cannot be listed": {"list " + s.List, errors.New("no such field"), "Unknown RequestsFail"},
	} {
		t.Run(name, func(t *testing.T) {
			s.Play(t, []client.Object{s.Checkout()}, func(f *Fixture) {
				var tries atomic.Int32
				fail := func(verb string, _ client.Object) error {
					if verb == c.verb {
						tries.Add(1)
						return c.err
					}
					return nil
				}
				f.FailRequests(fail)
				f.Lead()
				f.PassFor(keep.FailingPeriod - 2*keep.CheckPeriod)
				if c.want == "Unknown RequestsFail" {
					assert.Equal(f, "Unknown Pending", f.Reports("checkout"), "it may pass")
				} else {
					assert.Less(f, tries.Load(), int32(8))
				}
				f.PassFor(5 * keep.CheckPeriod)
				assert.Equal(f, c.want, f.Reports("checkout"))
				assert.Contains(f, f.Message("checkout"), c.err.Error(), "the words of the API server")
				if reason, ok := strings.CutPrefix(c.want, "False "); ok {
					assert.Equal(f, []string{"Warning " + reason}, f.Sent())
				} else {
					assert.Empty(f, f.Sent())
				}
				f.FailRequests(nil)
				f.PassFor(2 * time.Minute)
				f.AssertKept("checkout")
				if c.verb == "create" && c.want == "Unknown RequestsFail" {
					f.Remove("checkout")
					f.FailRequests(fail)
					f.PassFor(keep.FailingPeriod - 2*keep.CheckPeriod)
					assert.NotEqual(f, c.want+" checkout", f.Reports("checkout"), "the previous failure has ended")
				}
			})
		})
	}
}

func testDeletionThatFails(t *testing.T, s Subject) {
	s.Play(t, []client.Object{s.Checkout()}, func(f *Fixture) {
		f.Lead()
		f.Pass()
		f.FailRequests(func(verb string, o client.Object) error {
			if verb == "delete" {
				return apierrors.NewForbidden(schema.GroupResource{}, o.GetName(), errors.New("not granted"))
			}
			return nil
		})
		f.Want("checkout", false)
		f.PassRemoval()
		assert.Equal(f, "False Forbidden checkout", f.Reports("checkout"))
		f.FailRequests(nil)
		f.PassFor(keep.RetryPeriod + 5*keep.CheckPeriod)
		assert.Equal(f, "none", f.Reports("checkout"))
	})
}
