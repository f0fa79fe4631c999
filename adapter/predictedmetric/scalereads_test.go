package predictedmetric

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/scale"

	"github.com/foresail/foresail/api/v1alpha1"
)

// hanging is an API server that does not answer.
type hanging struct{ scale.ScaleInterface }

func (h hanging) Scales(string) scale.ScaleInterface { return h }

func (hanging) Get(
	ctx context.Context, _ schema.GroupResource, _ string, _ metav1.GetOptions,
) (*autoscalingv1.Scale, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A read of a scale that is not answered leaves the replicas unknown, and does not stay what they were.
func TestReadsOfScalesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mapper := meta.NewDefaultRESTMapper(nil)
		mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
		s := &Scales{Client: hanging{}, Mapper: mapper}
		began := time.Now()
		target := v1alpha1.ScaleTargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "checkout"}
		_, err := s.get(t.Context(), "shop", target)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, scaleTimeout, time.Since(began))
	})
}
