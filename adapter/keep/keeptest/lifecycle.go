package keeptest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/api/v1alpha1"
)

// Lifecycle tests how a Keeper creates, corrects and deletes the object of one PredictedMetric.
func Lifecycle(t *testing.T, s Subject) {
	run(t, s, map[string]func(*testing.T, Subject){
		"creates and corrects":                testCreatesAndCorrects,
		"removes with the field":              testRemovesWithTheField,
		"continues after any kill":            testKilledBetweenAnyTwoSteps,
		"reports Pending until it knows more": testPending,
		"writes nothing in dry run":           testDryRun,
	})
}

func run(t *testing.T, s Subject, tests map[string]func(*testing.T, Subject)) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}

func testCreatesAndCorrects(t *testing.T, s Subject) {
	s.Play(t, []client.Object{s.Checkout()}, func(f *Fixture) {
		f.Lead()
		f.Pass()
		f.AssertKept("checkout")
		created := f.Sent()
		require.Len(f, created, 1)
		assert.Regexp(f, "^Normal .*Created$", created[0])
		assert.Equal(f, []string{"create checkout"}, f.Wrote())
		planned := f.Find("checkout")
		owner := metav1.GetControllerOf(planned)
		require.NotNil(f, owner)
		assert.Equal(f, types.UID("uid-1"), owner.UID)
		assert.Nil(f, owner.BlockOwnerDeletion, "it takes a right that Foresail does not have")
		assert.Equal(f, "checkout", f.Target(planned))

		f.Pass()
		f.Lead()
		f.Pass()
		assert.Empty(f, f.Sent(), "nothing is left to do, for the next leader either")

		f.Edit("checkout", func(o client.Object) {
			f.Drift(o)
			o.SetAnnotations(map[string]string{"of": "a user"})
		})
		f.Writes()
		f.Pass()
		assert.Equal(f, f.Spec(planned), f.Spec(f.Find("checkout")))
		assert.Equal(f, map[string]string{"of": "a user"}, f.Find("checkout").GetAnnotations())
		assert.Equal(f, []string{"patch checkout"}, f.Wrote())
		assert.Equal(f, []string{strings.Replace(created[0], "Created", "Corrected", 1)}, f.Sent())

		f.Grow(f, "checkout")
		f.Pass()
		assert.NotEqual(f, f.Spec(planned), f.Spec(f.Find("checkout")))
		assert.Equal(f, []string{"patch checkout"}, f.Wrote())

		f.Remove("checkout")
		f.Pass()
		assert.NotNil(f, f.Find("checkout"), "a user who does not want it removes the field")
	})
}

func testRemovesWithTheField(t *testing.T, s Subject) {
	s.Play(t, []client.Object{s.Checkout(), s.Foreign("other", "other")}, func(f *Fixture) {
		f.Lead()
		f.Pass()
		f.Sent()
		f.Writes()
		uid := f.Find("checkout").GetUID()
		f.Want("checkout", false)
		f.PassRemoval()
		assert.Nil(f, f.Find("checkout"))
		assert.NotNil(f, f.Find("other"))
		assert.Equal(f, "none", f.Reports("checkout"))
		sent := f.Sent()
		require.Len(f, sent, 1)
		assert.Regexp(f, "^Normal .*Deleted$", sent[0])
		writes := f.Writes()
		last := writes[len(writes)-1]
		require.Equal(f, "delete", last.Verb)
		assert.Equal(f, uid, *last.Preconditions.UID)
		assert.Equal(f, last.Object.GetResourceVersion(), *last.Preconditions.ResourceVersion)

		f.Want("checkout", true)
		f.Pass()
		f.AssertKept("checkout")
	})
}

// A new leader continues after each request of the previous one.
func testKilledBetweenAnyTwoSteps(t *testing.T, s Subject) {
	s.Play(t, []client.Object{s.Checkout()}, func(f *Fixture) {
		for round := range 3 {
			f.Lead()
			f.WriteStatus() // Pending
			f.Lead()
			f.Check() // it starts to watch
			f.Check()
			if round == 0 {
				require.NotNil(f, f.Find("checkout"))
				assert.Equal(f, "Unknown Pending", f.Reports("checkout"), "killed before the status says so")
			}
			if round < 2 {
				f.Lead()
				f.Pass()
				f.AssertKept("checkout")
			} // else it must go before the status has it
			f.Want("checkout", false)
			f.Lead()
			for deadline := time.Now().Add(f.DrainTime + time.Minute); f.Find("checkout") != nil &&
				time.Now().Before(deadline); {
				f.Check()
			}
			require.Nil(f, f.Find("checkout"))
			assert.NotEqual(f, "none", f.Reports("checkout"), "killed before the status says so")
			f.Lead()
			f.Pass()
			assert.Equal(f, "none", f.Reports("checkout"))
			f.Want("checkout", true)
		}
		creations := slices.DeleteFunc(f.Wrote(), func(w string) bool { return !strings.HasPrefix(w, "create") })
		assert.Len(f, creations, 3)
	})
}

// The status says that there may be an object before there is one, and until there is none. A new leader keeps what it
// says.
func testPending(t *testing.T, s Subject) {
	pm := s.Checkout()
	s.Play(t, []client.Object{pm}, func(f *Fixture) {
		f.Lead()
		for range 5 {
			f.Check()
		}
		assert.Empty(f, f.Wrote(), "the status does not say it yet")
		f.WriteStatus()
		assert.Equal(f, "Unknown Pending", f.Reports("checkout"))
		f.Pass()
		kept := f.Reports("checkout")
		f.Want("checkout", false)
		f.Lead()
		f.WriteStatus()
		assert.Equal(f, kept, f.Reports("checkout"), "it knows nothing yet")
	})
}

// In dry run no object is created, and one that exists is left alone. Without the field it is still removed.
func testDryRun(t *testing.T, s Subject) {
	pm := s.Checkout()
	pm.Spec.DryRun = true
	dry := func(to bool) func(*v1alpha1.PredictedMetricSpec) {
		return func(s *v1alpha1.PredictedMetricSpec) { s.DryRun = to }
	}
	s.Play(t, []client.Object{pm}, func(f *Fixture) {
		f.Lead()
		f.Pass()
		assert.Equal(f, "False DryRun", f.Reports("checkout"))
		assert.Regexp(f, "^spec.dryRun is true: no .* is created$", f.Message("checkout"))
		assert.Equal(f, []string{"Normal DryRun"}, f.Sent())
		f.Lead()
		f.Pass()
		assert.Nil(f, f.Find("checkout"))
		assert.Empty(f, f.Sent(), "the next leader has nothing new")

		f.Change("checkout", dry(false))
		f.Pass()
		f.AssertKept("checkout")
		planned := f.Spec(f.Find("checkout"))
		f.Change("checkout", dry(true))
		f.Pass()
		f.Edit("checkout", f.Drift)
		edited := f.Find("checkout")
		f.Writes()
		f.Pass()
		assert.Equal(f, "False DryRun checkout", f.Reports("checkout"))
		assert.Contains(f, f.Message("checkout"), " checkout is left as it is")
		assert.Equal(f, edited, f.Find("checkout"))
		assert.Empty(f, f.Wrote())

		f.Change("checkout", dry(false))
		f.Pass()
		assert.Equal(f, planned, f.Spec(f.Find("checkout")), "it is corrected again")

		f.Change("checkout", dry(true))
		f.Want("checkout", false)
		f.PassRemoval()
		assert.Nil(f, f.Find("checkout"))
		assert.Equal(f, "none", f.Reports("checkout"))
	})
}
