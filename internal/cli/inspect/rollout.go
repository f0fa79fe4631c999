package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/cli"
)

const inDryRun = "spec.dryRun is true: the pool decides and reports, and replaces nothing"

func newRolloutCommand(now func() time.Time) *cobra.Command {
	k := &cli.Connection{}
	c := &cobra.Command{
		Use:   "rollout",
		Short: "Replace the workers of a pool by new ones, and pause, resume, abort or follow that",
		Long: `A WorkerPool replaces outdated workers by new ones: those that a new instance would differ
from (drift), those older than spec.disruption.expireAfter, and those launched before
spec.disruption.replaceBefore, which rollout restart sets. New workers are launched first, and
spec.disruption.budgets says how many may be replaced at once, and when.

Each subcommand but status changes spec.disruption of the WorkerPool and returns at once. That
needs the verb patch on workerpools of foresail.dev; status needs get.`,
		Example: `  foresail rollout restart workers
  foresail rollout status workers`,
		Args: cli.KnownCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },

		DisableFlagsInUseLine: true,
	}
	k.AddFlags(c)
	c.AddCommand(newRestartCommand(k, now), newPauseCommand(k), newResumeCommand(k), newAbortCommand(k),
		newRolloutStatusCommand(k))
	return c
}

func newRestartCommand(k *cli.Connection, now func() time.Time) *cobra.Command {
	return newRolloutChange(k, &cobra.Command{
		Use:   "restart WORKERPOOL",
		Short: "Replace all workers that were launched before now",
		Long: `Restart sets spec.disruption.replaceBefore of a WorkerPool to the present, and spec.disruption.paused
to false. All workers that were launched before are replaced, new ones first, as fast as
spec.disruption.budgets allows. The time is that of the machine that this runs on.`,
		Example: `  foresail rollout restart workers

  # The same with kubectl
  kubectl patch workerpool workers --type=merge -p '{"spec":{"disruption":{"replaceBefore":"'$(date -u +%FT%TZ)'","paused":null}}}'`,
	}, func() map[string]any {
		return map[string]any{"replaceBefore": metav1.NewTime(now()), "paused": nil}
	}, func(w io.Writer, pool *v1alpha1.WorkerPool) error {
		_, err := fmt.Fprintf(w, "workerpool/%s restarted: workers launched before %s are replaced, new ones first, within spec.disruption.budgets\nTo follow it: foresail rollout status %[1]s\n",
			pool.Name, rfc3339(pool.Spec.Disruption.ReplaceBefore))
		return err
	})
}

func newPauseCommand(k *cli.Connection) *cobra.Command {
	return newRolloutChange(k, &cobra.Command{
		Use:   "pause WORKERPOOL",
		Short: "Replace no outdated worker until rollout resume",
		Long: `Pause sets spec.disruption.paused of a WorkerPool. No outdated worker is replaced, and outdated
nodes that are being drained and are not empty yet take pods again; those that are empty are still
terminated. Scale-up and scale-down go on, and so do their drains.`,
		Example: `  foresail rollout pause workers`,
	}, func() map[string]any {
		return map[string]any{"paused": true}
	}, func(w io.Writer, pool *v1alpha1.WorkerPool) error {
		_, err := fmt.Fprintf(w, "workerpool/%s paused: nodes that are drained for being outdated and are not empty yet take pods again\nOutdated workers are replaced only after foresail rollout resume %[1]s\n", pool.Name)
		return err
	})
}

func newResumeCommand(k *cli.Connection) *cobra.Command {
	return newRolloutChange(k, &cobra.Command{
		Use:   "resume WORKERPOOL",
		Short: "Replace outdated workers again after rollout pause or abort",
		Long: `Resume removes spec.disruption.paused of a WorkerPool. Workers that are outdated are replaced again.
After an abort these are the ones that drifted or expired.`,
		Example: `  foresail rollout resume workers`,
	}, func() map[string]any {
		return map[string]any{"paused": nil}
	}, func(w io.Writer, pool *v1alpha1.WorkerPool) error {
		_, err := fmt.Fprintf(w, "workerpool/%s resumed: outdated workers are replaced, within spec.disruption.budgets\n", pool.Name)
		return err
	})
}

func newAbortCommand(k *cli.Connection) *cobra.Command {
	return newRolloutChange(k, &cobra.Command{
		Use:   "abort WORKERPOOL",
		Short: "Take back a rollout restart, and pause",
		Long: `Abort removes spec.disruption.replaceBefore of a WorkerPool, and sets spec.disruption.paused. Outdated
nodes that are being drained and are not empty yet take pods again; those that are empty are still
terminated. Nodes of a scale-down go on to be drained. Workers that were launched as replacements
stay, until the pool needs fewer.

It is paused as well, so workers that drifted or expired are replaced only after rollout resume.`,
		Example: `  foresail rollout abort workers`,
	}, func() map[string]any {
		return map[string]any{"replaceBefore": nil, "paused": true}
	}, func(w io.Writer, pool *v1alpha1.WorkerPool) error {
		_, err := fmt.Fprintf(w, "workerpool/%s aborted: nodes that are drained for being outdated and are not empty yet take pods again\nIt is paused: workers that drifted or expired are replaced only after foresail rollout resume %[1]s\n", pool.Name)
		return err
	})
}

// newRolloutChange completes a command that patches spec.disruption.
func newRolloutChange(k *cli.Connection, c *cobra.Command, disruption func() map[string]any,
	report func(io.Writer, *v1alpha1.WorkerPool) error) *cobra.Command {
	c.Args = cli.OneName(cli.APool)
	c.DisableFlagsInUseLine = true
	c.ValidArgsFunction = k.CompletePools
	c.RunE = func(c *cobra.Command, args []string) error {
		_, objects, err := k.Connect()
		if err != nil {
			return err
		}
		pool, err := patchDisruption(c, objects, args[0], disruption())
		if err != nil {
			return err
		}
		if err := report(c.OutOrStdout(), pool); err != nil {
			return err
		}
		return noteDryRun(c.OutOrStdout(), pool)
	}
	return c
}

// patchDisruption merges fields into spec.disruption of a WorkerPool and returns what became of it.
func patchDisruption(c *cobra.Command, objects client.Client, name string,
	disruption map[string]any) (*v1alpha1.WorkerPool, error) {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"disruption": disruption}})
	if err != nil {
		return nil, err
	}
	pool := &v1alpha1.WorkerPool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	// Strict: an API server whose CRD is older would leave the field out, and report success.
	strict := client.WithFieldValidation(objects, metav1.FieldValidationStrict)
	err = strict.Patch(c.Context(), pool, client.RawPatch(types.MergePatchType, patch),
		client.FieldOwner("foresail-rollout"))
	switch {
	case err == nil:
		return pool, nil
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("change WorkerPool %s: %w: it needs the verb patch on workerpools of foresail.dev", name,
			err)
	case strings.Contains(err.Error(), `unknown field "spec.disruption`):
		return nil, errors.New("the cluster does not know spec.disruption of WorkerPools: kubectl apply -k manifests/crds makes it know it")
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil, missingPool(c.Context(), objects, name, err)
	default:
		return nil, fmt.Errorf("change WorkerPool %s: %w", name, err)
	}
}

// missingPool names the pools there are when one cannot be read.
func missingPool(ctx context.Context, objects client.Client, name string, err error) error {
	return cli.Missing(ctx, objects, "WorkerPool", name, "", &v1alpha1.WorkerPoolList{}, err)
}

func noteDryRun(w io.Writer, pool *v1alpha1.WorkerPool) error {
	if !pool.Spec.DryRun {
		return nil
	}
	_, err := fmt.Fprintln(w, inDryRun)
	return err
}

// rolloutStatus is how far the replacement of outdated workers is.
type rolloutStatus struct {
	Name string `json:"name"`
	// every worker is known not to be outdated by the newest spec
	Done          bool         `json:"done"`
	Outdated      *int32       `json:"outdated,omitempty"` // absent while it is unknown
	Unknown       int32        `json:"unknown,omitempty"`  // workers of which it is not known
	Message       string       `json:"message,omitempty"`
	Paused        bool         `json:"paused"`
	DryRun        bool         `json:"dryRun"`
	ReplaceBefore *metav1.Time `json:"replaceBefore,omitempty"`
}

func newRolloutStatusCommand(k *cli.Connection) *cobra.Command {
	c := &cobra.Command{
		Use:   "status WORKERPOOL [--output table|json]",
		Short: "Show how many workers are still to be replaced, and what holds that back",
		Long: `Status shows spec.disruption and status.rollout of a WorkerPool: how many workers are outdated, why,
and what holds their replacement back, such as a budget. A worker counts until it is drained and
terminated. It changes nothing. The exit code is 0 whether workers are outdated or not. With --output
json the field done is true once no worker is outdated by the newest spec. While that is not known,
as before the first cycle by a new spec, it is false.`,
		Example: `  foresail rollout status workers

  # Wait until all workers are replaced
  until foresail rollout status workers -o json | jq -e .done; do sleep 15; done`,
		Args: cli.OneName(cli.APool),

		DisableFlagsInUseLine: true,
	}
	output := cli.AddOutputFlag(c, "table", "json")
	c.ValidArgsFunction = k.CompletePools
	c.RunE = func(c *cobra.Command, args []string) error {
		_, objects, err := k.Connect()
		if err != nil {
			return err
		}
		name := args[0]
		var pool v1alpha1.WorkerPool
		if err := objects.Get(c.Context(), client.ObjectKey{Name: name}, &pool); err != nil {
			return missingPool(c.Context(), objects, name, err)
		}
		s := rolloutOf(&pool)
		if output.String() == "json" {
			return cli.PrintJSON(c.OutOrStdout(), s)
		}
		return s.print(c.OutOrStdout())
	}
	return c
}

// rolloutOf reads the status of a pool. As in kubectl rollout status, a status of an older
// generation says nothing about the newest spec. If that spec was rejected, the condition Healthy
// has the reason.
func rolloutOf(pool *v1alpha1.WorkerPool) rolloutStatus {
	d := &pool.Spec.Disruption
	s := rolloutStatus{Name: pool.Name, Paused: d.Paused, DryRun: pool.Spec.DryRun, ReplaceBefore: d.ReplaceBefore}
	r, observed := pool.Status.Rollout, pool.Status.ObservedGeneration >= pool.Generation
	switch healthy := meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionHealthy); {
	case r != nil && observed:
		s.Outdated, s.Unknown, s.Message, s.Done = &r.Outdated, r.Unknown, r.Message, r.Outdated+r.Unknown == 0
	case healthy != nil && healthy.Status == metav1.ConditionFalse:
		s.Message = healthy.Message
	}
	return s
}

func (s rolloutStatus) print(w io.Writer) error {
	lines := []string{"workerpool/" + s.Name + ": " + s.progress()}
	if s.Message != "" {
		lines = append(lines, s.Message)
	}
	if s.ReplaceBefore != nil {
		lines = append(lines, "Workers launched before "+rfc3339(s.ReplaceBefore)+" are replaced (spec.disruption.replaceBefore)")
	}
	if s.Paused {
		lines = append(lines, "Paused: outdated workers are replaced only after foresail rollout resume "+s.Name)
	}
	if s.DryRun {
		lines = append(lines, inDryRun)
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

func (s rolloutStatus) progress() string {
	switch {
	case s.Outdated == nil:
		return "not known: the pool has not reported on its newest spec yet, or cannot read its workers (foresail explain workerpool " + s.Name + ")"
	case *s.Outdated == 0 && s.Unknown > 0:
		return "not known: workers may be outdated"
	case *s.Outdated == 0:
		return "no worker is outdated"
	case *s.Outdated == 1:
		return "1 outdated worker is still to be replaced"
	default:
		return fmt.Sprintf("%d outdated workers are still to be replaced", *s.Outdated)
	}
}

func rfc3339(t *metav1.Time) string {
	if t == nil {
		return "never"
	}
	return t.UTC().Format(time.RFC3339)
}
