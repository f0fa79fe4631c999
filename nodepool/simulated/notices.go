package simulated

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Notice is what the cloud tells of an instance by itself.
type Notice struct {
	InstanceID string
	Deadline   time.Time // when the cloud takes the instance back; zero: it only advises to leave it
}

// Notices returns what the cloud has told of the pool's instances, until it is said to have been heard.
func (c *Cloud) Notices(ctx context.Context) ([]Notice, error) {
	all, err := c.list(ctx)
	if err != nil {
		return nil, failure("Notices", err)
	}
	var out []Notice
	for _, i := range all {
		if i.State == terminated {
			continue
		}
		if !i.TakenAt.IsZero() && !i.TakenAt.Equal(i.NoticeDone) {
			out = append(out, Notice{InstanceID: i.id(), Deadline: i.TakenAt})
		}
		if i.Advised && !i.AdviceDone {
			out = append(out, Notice{InstanceID: i.id()})
		}
	}
	return out, nil
}

// Heard keeps a notice from being told again. It may be repeated.
func (c *Cloud) Heard(ctx context.Context, n Notice) error {
	for {
		i, err := c.get(ctx, n.InstanceID)
		if err != nil || i == nil {
			return failure("Heard", err)
		}
		if n.Deadline.IsZero() {
			i.AdviceDone = true
		} else {
			i.NoticeDone = n.Deadline
		}
		if err := c.update(ctx, i); !apierrors.IsConflict(err) {
			return failure("Heard", err)
		}
	}
}
