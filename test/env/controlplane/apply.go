package controlplane

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"
)

// fieldManager owns the fields that this package applies.
const fieldManager = "controlplane"

// applier applies objects of any kind, those whose definition came a moment ago included.
type applier struct {
	client    dynamic.Interface
	discovery discovery.DiscoveryInterface
	mapper    *restmapper.DeferredDiscoveryRESTMapper
}

func newApplier(config *rest.Config, client dynamic.Interface) (*applier, error) {
	discoveryClient, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discoveryClient))
	return &applier{client: client, discovery: discoveryClient, mapper: mapper}, nil
}

// ApplyFiles applies the files whose paths match a pattern, as Apply does.
func (c *Cluster) ApplyFiles(ctx context.Context, pattern string) error {
	files, err := filepath.Glob(pattern)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("%s: no such file", pattern)
	}
	for _, file := range files {
		manifest, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if _, err := c.Apply(ctx, manifest); err != nil {
			return err
		}
	}
	return nil
}

// Apply applies manifests, each of any number of YAML documents, in their order, by server-side
// apply, and returns the objects as they are then. Objects without a namespace go to "default". An
// object may be of a kind that an earlier one defines: Apply waits until definitions are served,
// for as long as ctx lasts.
func (c *Cluster) Apply(ctx context.Context, manifests ...[]byte) ([]*unstructured.Unstructured, error) {
	var applied []*unstructured.Unstructured
	for _, manifest := range manifests {
		objects, err := decodeManifest(manifest)
		if err != nil {
			return applied, err
		}
		for _, object := range objects {
			result, err := c.applyObject(ctx, object)
			if err != nil {
				return applied, fmt.Errorf("apply %s %q: %w", object.GetKind(), object.GetName(), err)
			}
			applied = append(applied, result)
		}
	}
	return applied, nil
}

// decodeManifest reads the objects of a manifest; fields given twice are an error.
func decodeManifest(manifest []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifest)))
	for i := 1; ; i++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("manifest: document %d: %w", i, err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(document, &object.Object); err != nil {
			return nil, fmt.Errorf("manifest: document %d: %w", i, err)
		}
		if len(object.Object) == 0 {
			continue
		}
		if object.GetAPIVersion() == "" || object.GetKind() == "" || object.GetName() == "" {
			return nil, fmt.Errorf("manifest: document %d: want apiVersion, kind and metadata.name", i)
		}
		objects = append(objects, object)
	}
}

func (c *Cluster) applyObject(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured,
	error) {
	resource, err := c.resourceFor(ctx, object)
	if err != nil {
		return nil, err
	}
	options := metav1.ApplyOptions{FieldManager: fieldManager, Force: true}
	result, err := resource.Apply(ctx, object.GetName(), object, options)
	if err != nil {
		return nil, err
	}
	if object.GetKind() == "CustomResourceDefinition" {
		return c.waitEstablished(ctx, resource, object.GetName())
	}
	return result, nil
}

// resourceFor finds where objects of a kind are kept.
func (c *Cluster) resourceFor(ctx context.Context, object *unstructured.Unstructured) (dynamic.ResourceInterface,
	error) {
	gvk := object.GroupVersionKind()
	var mapping *meta.RESTMapping
	err := c.poll(ctx, "kind "+gvk.String()+" to be served", func(context.Context) error {
		var err error
		mapping, err = c.applier.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			c.applier.mapper.Reset()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return c.applier.client.Resource(mapping.Resource), nil
	}
	namespace := object.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	return c.applier.client.Resource(mapping.Resource).Namespace(namespace), nil
}

// waitEstablished waits until the kind that a CustomResourceDefinition defines is served.
func (c *Cluster) waitEstablished(ctx context.Context, resource dynamic.ResourceInterface,
	name string) (*unstructured.Unstructured, error) {
	var definition *unstructured.Unstructured
	err := c.poll(ctx, name+" to be established", func(ctx context.Context) error {
		var err error
		if definition, err = resource.Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		conditions, _, err := unstructured.NestedSlice(definition.Object, "status", "conditions")
		if err != nil {
			return err
		}
		for _, condition := range conditions {
			if fields, ok := condition.(map[string]any); ok && fields["type"] == "Established" &&
				fields["status"] == "True" {
				return nil
			}
		}
		return fmt.Errorf("condition Established is not True: %v", conditions)
	})
	if err != nil {
		return nil, err
	}
	return definition, c.waitDiscovered(ctx, definition)
}

// waitDiscovered waits until clients find the kind of an established definition: discovery follows
// a moment later.
func (c *Cluster) waitDiscovered(ctx context.Context, definition *unstructured.Unstructured) error {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(definition.Object, &crd); err != nil {
		return err
	}
	for _, version := range crd.Spec.Versions {
		if !version.Served {
			continue
		}
		gv := metav1.GroupVersion{Group: crd.Spec.Group, Version: version.Name}.String()
		err := c.poll(ctx, crd.Name+" to be found in "+gv, func(context.Context) error {
			list, err := c.applier.discovery.ServerResourcesForGroupVersion(gv)
			if err == nil && !slices.ContainsFunc(list.APIResources,
				func(r metav1.APIResource) bool { return r.Name == crd.Spec.Names.Plural }) {
				err = fmt.Errorf("%s has no %s", gv, crd.Spec.Names.Plural)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
