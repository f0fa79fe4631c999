package remotewrite

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/foresail/foresail/adapter/source/sourcetest"
	"github.com/foresail/foresail/pipeline"
)

func TestSamplesReachTheirSubscriptions(t *testing.T) {
	for _, e := range encodings {
		t.Run(e.name, func(t *testing.T) {
			r := newReceiver()
			all, queue := sourcetest.NewRecorder(), sourcetest.NewRecorder()
			fleet := newFleet("shop", "web-0", "web-1")
			r.Set(key("all"), gauge(), fleet, all)
			r.Set(key("queue"), matching(gauge(), "kind", "queue", "zone", ""), fleet, queue)

			w := r.push(e,
				push("load{kind=queue,namespace=shop,pod=web-0}", at(-2, 1), at(-1, 2)),
				push("load{kind=other,namespace=shop,pod=web-1}", at(-1, 3)),
				push("load{kind=queue,namespace=bank,pod=web-1}", at(-1, 4)),
				push("load{kind=queue,namespace=shop,pod=db-0}", at(-1, 5)),
				push("load{kind=queue,namespace=shop}", at(-1, 6)),
				push("other{namespace=shop,pod=web-0}", at(-1, 7)),
			)
			assert.Equal(t, http.StatusNoContent, w.Code, w.Body)
			assert.Empty(t, w.Body.String())
			assert.Equal(t, []pipeline.Sample{{T: start - 2000, V: 1}, {T: start - 1000, V: 2}},
				all.Samples("uid-web-0"))
			assert.Equal(t, []float64{3}, all.Values("uid-web-1"))
			assert.Equal(t, []float64{1, 2}, queue.Values("uid-web-0"))
			assert.Empty(t, queue.Samples("uid-web-1"), "another kind")
			assert.Equal(t, 5, r.count(t, "taken"), "once per subscription")
			assert.Equal(t, 2, r.count(t, "unknown_pod"))
			assert.Equal(t, 1, r.count(t, "no_pod_label"))
			assert.Equal(t, 1, r.count(t, "unselected"))

			r.Remove(key("all"))
			r.push(e, push("load{kind=queue,namespace=shop,pod=web-0}", at(0, 8)))
			assert.Equal(t, []float64{1, 2}, all.Values("uid-web-0"))
			assert.Equal(t, []float64{1, 2, 8}, queue.Values("uid-web-0"))
			r.Remove(key("queue"))
			r.push(e, push("load{kind=queue,namespace=shop,pod=web-0}", at(1, 9)))
			assert.Equal(t, []float64{1, 2, 8}, queue.Values("uid-web-0"))
			assert.Empty(t, r.index.groups, "nothing is left behind")
		})
	}
}
