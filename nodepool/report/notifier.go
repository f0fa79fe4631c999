package report

import (
	"context"
	"errors"

	"k8s.io/klog/v2"

	"github.com/foresail/foresail/nodepool"
)

// backlog bounds the queued messages of a webhook; further ones are dropped.
const backlog = 64

// notifier queues notifications of a pool and sends them.
type notifier struct {
	webhook    *Webhook    // nil: messages are discarded
	cloudWatch *CloudWatch // nil: none
	metrics    *Metrics

	messages chan string
	figures  chan figures // for CloudWatch, only the newest
}

func newNotifier(webhook *Webhook, cloudWatch *CloudWatch, metrics *Metrics) *notifier {
	return &notifier{
		webhook: webhook, cloudWatch: cloudWatch, metrics: metrics,
		messages: make(chan string, backlog), figures: make(chan figures, 1),
	}
}

// notify queues the notifications of a cycle.
func (n *notifier) notify(cycle nodepool.CycleReport, changed bool) {
	for _, text := range messagesOf(cycle, changed) {
		n.queue(text)
	}
	if n.cloudWatch == nil {
		return
	}
	select {
	case <-n.figures: // an older one that was not sent yet
	default:
	}
	n.figures <- figuresOf(cycle)
}

// queue queues a message for the webhook.
func (n *notifier) queue(text string) {
	select {
	case n.messages <- text:
	default:
		n.metrics.failed.WithLabelValues("webhook").Inc()
	}
}

// run sends queued notifications until ctx ends.
func (n *notifier) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case text := <-n.messages:
			if n.webhook != nil {
				n.check(ctx, "webhook", n.webhook.post(ctx, text))
			}
		case f := <-n.figures:
			n.check(ctx, "cloudwatch", n.cloudWatch.put(ctx, f))
		}
	}
}

// check logs and counts the error of a notification. The end of ctx is none.
func (n *notifier) check(ctx context.Context, to string, err error) {
	if err == nil || errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return
	}
	n.metrics.failed.WithLabelValues(to).Inc()
	klog.FromContext(ctx).Error(err, "Cannot send a notification", "to", to)
}
