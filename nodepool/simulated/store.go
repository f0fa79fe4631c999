package simulated

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// store keeps the instances of all pools, each in a ConfigMap.
type store struct {
	client    typedcorev1.CoreV1Interface
	namespace string
	pool      string
}

// create stores an instance, unless its token has launched one, and returns the stored one.
func (s *store) create(ctx context.Context, i *instance) (*instance, error) {
	object, configMaps := i.object(s.namespace), s.client.ConfigMaps(s.namespace)
	created, err := configMaps.Create(ctx, object, metav1.CreateOptions{})
	if apierrors.IsNotFound(err) { // the namespace
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
		_, err = s.client.Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("create the namespace of instances: %w", err)
		}
		created, err = configMaps.Create(ctx, object, metav1.CreateOptions{})
	}
	switch {
	case apierrors.IsAlreadyExists(err):
		stored, err := s.get(ctx, i.id())
		if err == nil && stored == nil {
			err = errors.New("the instance of the token was deleted just now")
		}
		return stored, err
	case err != nil:
		return nil, err
	}
	return instanceOf(created)
}

// get returns the instance with an id, of any pool; nil if it does not exist.
func (s *store) get(ctx context.Context, id string) (*instance, error) {
	object, err := s.client.ConfigMaps(s.namespace).Get(ctx, id, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return instanceOf(object)
}

// list returns the instances of the pool, by id, including terminated ones.
func (s *store) list(ctx context.Context) ([]*instance, error) {
	selector := metav1.FormatLabelSelector(metav1.SetAsLabelSelector(map[string]string{poolLabel: s.pool}))
	objects, err := s.client.ConfigMaps(s.namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	var out []*instance
	for n := range objects.Items {
		i, err := instanceOf(&objects.Items[n])
		if err != nil {
			return nil, err
		}
		out = append(out, i)
	}
	return out, nil
}

// update stores an instance. It is a conflict if another writer has changed the instance since it was read.
func (s *store) update(ctx context.Context, i *instance) error {
	_, err := s.client.ConfigMaps(s.namespace).Update(ctx, i.object(s.namespace), metav1.UpdateOptions{})
	return ignoreNotFound(err)
}

// remove deletes an instance permanently.
func (s *store) remove(ctx context.Context, i *instance) error {
	return ignoreNotFound(s.client.ConfigMaps(s.namespace).Delete(ctx, i.id(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &i.meta.UID},
	}))
}

// faults returns the ConfigMap with the faults of the cloud, an empty one if there is none.
func (s *store) faults(ctx context.Context) (*corev1.ConfigMap, error) {
	object, err := s.client.ConfigMaps(s.namespace).Get(ctx, FaultsName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return &corev1.ConfigMap{}, nil
	}
	return object, err
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
