package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/api/v1alpha1"
)

// MetricNamed reads a PredictedMetric. Its error names those that exist instead.
func MetricNamed(ctx context.Context, objects client.Client, key client.ObjectKey) (*v1alpha1.PredictedMetric, error) {
	var pm v1alpha1.PredictedMetric
	if err := objects.Get(ctx, key, &pm); err != nil {
		return nil, Missing(ctx, objects, "PredictedMetric", key.Name, key.Namespace, &v1alpha1.PredictedMetricList{},
			err)
	}
	return &pm, nil
}

// Missing returns an error about an object that cannot be read, with the names that exist instead.
// The namespace is empty for kinds that have none.
func Missing(ctx context.Context, objects client.Client, kind, name, namespace string, list client.ObjectList,
	err error) error {
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
			return fmt.Errorf("%s; %s", nothing, InNamespaces(others))
		}
	}
	if listErr := objects.List(ctx, list, client.InNamespace(namespace)); listErr != nil {
		return errors.Join(errors.New(nothing), listErr)
	}
	names := EachObject(list, client.Object.GetName)
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

// elsewhere names the objects of a kind by their namespaces; empty if there are none, or without
// the right to list them.
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
	return EachObject(list, client.Object.GetNamespace), nil
}

// InNamespaces returns which flag selects an object that exists in other namespaces.
func InNamespaces(namespaces []string) string {
	if len(namespaces) == 1 {
		return fmt.Sprintf("namespace %s has one: add -n %[1]s", namespaces[0])
	}
	return fmt.Sprintf("the namespaces %s have one each: add -n NAMESPACE", strings.Join(namespaces, ", "))
}

// EachObject applies a function to each object of a list, and returns the results.
func EachObject(list client.ObjectList, of func(client.Object) string) []string {
	var out []string
	_ = meta.EachListItem(list, func(o runtime.Object) error { // the callback never fails
		if object, ok := o.(client.Object); ok {
			out = append(out, of(object))
		}
		return nil
	})
	return out
}
