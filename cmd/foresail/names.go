package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/api/v1alpha1"
)

// Kinds that commands take the name of.
const (
	aMetric = "a PredictedMetric"
	aPool   = "a WorkerPool"
	aPod    = "a Pod"
)

// typeNames are the words for each kind that kubectl accepts in TYPE/NAME.
var typeNames = map[string][]string{
	aMetric: {"predictedmetric", "predictedmetrics", "pm", "predictedmetric.foresail.dev", "predictedmetrics.foresail.dev"},
	aPool:   {"workerpool", "workerpools", "wp", "workerpool.foresail.dev", "workerpools.foresail.dev"},
	aPod:    {"pod", "pods", "po"},
}

// oneName refuses any number of arguments but one. Of an argument TYPE/NAME it leaves the name in args, which cobra gives to the
// command afterwards.
func oneName(of string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch len(args) {
		case 1:
		case 0:
			return fmt.Errorf("the name of %s is missing: %s NAME", of, c.CommandPath())
		default:
			return fmt.Errorf("unexpected argument %q: %s takes one name", args[1], c.CommandPath())
		}
		name := args[0]
		if kind, rest, ok := strings.Cut(name, "/"); ok && slices.Contains(typeNames[of], kind) {
			name = rest
		}
		if name == "" || strings.Contains(name, "/") {
			return fmt.Errorf("%q: must be the name of %s, such as NAME or %s/NAME", args[0], of, typeNames[of][0])
		}
		args[0] = name
		return nil
	}
}

// splitType turns the argument TYPE/NAME of a command that has a subcommand for each type into the two arguments TYPE NAME. It returns an
// error for an argument that is no subcommand, before cobra complains about the flags that follow.
func splitType(root *cobra.Command, args []string) (split []string, command *cobra.Command, err error) {
	command, rest, unknown := root.Find(args)
	if unknown == nil && command != root && command.HasAvailableSubCommands() {
		split, err = splitFor(command, rest, args)
		return split, command, err
	}
	return args, command, nil // cobra reports an unknown command
}

// splitFor is splitType for the arguments of a command that has subcommands. rest are those after its name.
func splitFor(command *cobra.Command, rest, args []string) ([]string, error) {
	for i, arg := range args {
		kind, name, ok := strings.Cut(arg, "/")
		if !ok || !slices.Contains(rest, arg) || isValue(command, args[:i]) {
			continue
		}
		for _, sub := range command.Commands() {
			if kind == sub.Name() || sub.HasAlias(kind) || strings.HasSuffix(kind, ".foresail.dev") && strings.HasPrefix(kind, sub.Name()) {
				// They go first, as cobra takes an argument after a flag of a subcommand for the value of that flag.
				at := slices.Index(args, command.Name()) + 1
				return slices.Concat(args[:at], []string{sub.Name(), name}, args[at:i], args[i+1:]), nil
			}
		}
	}
	if len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return args, knownCommand(command, rest)
	}
	return args, nil
}

// isValue reports whether the argument that follows others is the value of the flag that is the last of them.
func isValue(command *cobra.Command, before []string) bool {
	if len(before) == 0 {
		return false
	}
	name, long := strings.CutPrefix(before[len(before)-1], "--")
	short, isShort := strings.CutPrefix(before[len(before)-1], "-")
	if !isShort {
		return false
	}
	for _, sub := range command.Commands() {
		flag := sub.Flags().Lookup(name)
		if !long && len(short) == 1 {
			flag = sub.Flags().ShorthandLookup(short)
		}
		if flag != nil && flag.NoOptDefVal == "" {
			return true
		}
	}
	return false
}

// metricNamed reads a PredictedMetric. Its error names those that exist instead.
func metricNamed(ctx context.Context, objects client.Client, key client.ObjectKey) (*v1alpha1.PredictedMetric, error) {
	var pm v1alpha1.PredictedMetric
	if err := objects.Get(ctx, key, &pm); err != nil {
		return nil, missing(ctx, objects, "PredictedMetric", key.Name, key.Namespace, &v1alpha1.PredictedMetricList{}, err)
	}
	return &pm, nil
}

// missing returns an error about an object that cannot be read, with the names that exist instead. The namespace is empty for kinds that
// have none.
func missing(ctx context.Context, objects client.Client, kind, name, namespace string, list client.ObjectList, err error) error {
	where := ""
	if namespace != "" {
		where = " in namespace " + namespace
	}
	switch {
	case meta.IsNoMatchError(err):
		return fmt.Errorf("the cluster does not know %ss: kubectl apply -k manifests/crds makes it know them", kind)
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("read %s %s%s: %w", kind, name, where, err)
	}
	nothing := fmt.Sprintf("there is no %s %q%s", kind, name, where)
	if namespace != "" {
		// Without the right to list all namespaces only this one is searched.
		if others, err := namespacesWith(ctx, objects, name, list); err == nil && len(others) > 0 {
			return fmt.Errorf("%s; %s", nothing, inNamespaces(others))
		}
	}
	if listErr := objects.List(ctx, list, client.InNamespace(namespace)); listErr != nil {
		return errors.Join(errors.New(nothing), listErr)
	}
	names := each(list, client.Object.GetName)
	if len(names) == 0 && namespace == "" {
		return fmt.Errorf("%s, nor any other", nothing)
	}
	if len(names) == 0 {
		return fmt.Errorf("%s, nor any other in it%s", nothing, elsewhere(ctx, objects, list))
	}
	return fmt.Errorf("%s: must be one of %s", nothing, strings.Join(names, ", "))
}

// shownNamespaces bounds how many namespaces an error names.
const shownNamespaces = 3

// elsewhere names the objects of a kind by their namespaces; empty if there are none, or without the right to list them.
func elsewhere(ctx context.Context, objects client.Client, list client.ObjectList) string {
	if objects.List(ctx, list) != nil {
		return ""
	}
	names := map[string][]string{}
	_ = meta.EachListItem(list, func(o runtime.Object) error { // the callback never fails
		if object, ok := o.(client.Object); ok {
			names[object.GetNamespace()] = append(names[object.GetNamespace()], object.GetName())
		}
		return nil
	})
	out := ""
	for i, namespace := range slices.Sorted(maps.Keys(names)) {
		if i == shownNamespaces {
			return out + fmt.Sprintf("; %d more namespaces have some", len(names)-i)
		}
		out += fmt.Sprintf("; namespace %s has %s", namespace, strings.Join(names[namespace], ", "))
	}
	return out
}

// namespacesWith returns the namespaces that have an object of a name.
func namespacesWith(ctx context.Context, objects client.Client, name string, list client.ObjectList) ([]string, error) {
	named := client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", name)}
	if err := objects.List(ctx, list, named); err != nil {
		return nil, err
	}
	return each(list, client.Object.GetNamespace), nil
}

// inNamespaces returns which flag selects an object that exists in other namespaces.
func inNamespaces(namespaces []string) string {
	if len(namespaces) == 1 {
		return fmt.Sprintf("namespace %s has one: add -n %[1]s", namespaces[0])
	}
	return fmt.Sprintf("the namespaces %s have one each: add -n NAMESPACE", strings.Join(namespaces, ", "))
}

// each applies a function to each object of a list, and returns the results.
func each(list client.ObjectList, of func(client.Object) string) []string {
	var out []string
	_ = meta.EachListItem(list, func(o runtime.Object) error { // the callback never fails
		if object, ok := o.(client.Object); ok {
			out = append(out, of(object))
		}
		return nil
	})
	return out
}
