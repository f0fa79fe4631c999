//go:build long

package karpenter_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// load is what pods arrive in twenty minutes, at the times of a real cluster.
type load struct {
	name    string
	pods    func(at time.Duration) int // of a Deployment
	batches []batch                    // in the order of their times

	most   int  // nodes of a pool; 0 = 50
	spread bool // no node has two more pods of the Deployment than another
}

func (l load) maxNodes() int { return cmp.Or(l.most, 50) }

// template returns the pods of the Deployment.
func (l load) template(t corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	if l.spread {
		t.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: t.Labels},
		}}
	}
	return t
}

// batch is a Job whose pods all run at once.
type batch struct {
	at, runs time.Duration
	pods     int
}

const (
	loadTime = 20 * time.Minute
	quiet    = 8 // pods of a Deployment when least is to do
	busy     = 48
)

func loads() []load {
	return []load{
		{name: "ramp", pods: func(at time.Duration) int {
			const flat, rise, high = 2 * time.Minute, 5 * time.Minute, 4 * time.Minute
			up := share(at-flat, rise)
			down := share(at-flat-rise-high, rise)
			return between(up - down)
		}},
		{name: "day-and-night", pods: func(at time.Duration) int {
			return between((1 - math.Cos(2*math.Pi*float64(at)/float64(loadTime))) / 2)
		}},
		{name: "batch-jobs", pods: func(time.Duration) int { return quiet }, batches: randomBatches()},
		{name: "spikes", pods: func(at time.Duration) int {
			const every, first, lasts = 4 * time.Minute, 2 * time.Minute, time.Minute
			if into := (at - first + every) % every; at >= first && into < lasts {
				return busy - quiet
			}
			return quiet
		}},
		{name: "recorded-requests", pods: recorded(languageModelRequests)},
		{name: "recorded-jump", pods: recorded(postsOfAStream)},
	}
}

// Recorded arrivals, as the pods that carry the mean rate of 15 s, of which the largest of the last
// minute stays: every 15 s of twenty minutes, at least 8 and at most 48.
var (
	// languageModelRequests are of a conversation service in Azure, minutes 20 to 40 at 0.3
	// requests a second and pod: AzureLLMInferenceTrace_conv of Azure/AzurePublicDataset, CC-BY
	// 4.0.
	languageModelRequests = []int{
		24, 24, 24, 23, 23, 23, 23, 23, 23, 24, 24, 25, 25, 25, 25, 24, 24, 23, 23, 24, 26, 26, 26, 26, 24, 24, 29,
		29, 29, 29, 29, 31, 31, 31, 31, 29, 29, 28, 28, 28, 28, 28, 28, 28, 30, 30, 30, 30, 30, 29, 28, 28, 29, 29,
		29, 29, 24, 25, 25, 27, 27, 27, 28, 28, 28, 28, 30, 30, 30, 30, 22, 19, 20, 20, 20, 20, 20, 19, 19, 20,
	}
	// postsOfAStream are of Twitter's sample stream from 01:28 UTC on 2021-08-02, around the first
	// jump by more than 2.5 times of that week, at 5.2 posts a second and pod: dataset/twitter of
	// reconfigurable-ml-pipeline/web-service-datasets.
	postsOfAStream = []int{
		9, 9, 10, 10, 10, 10, 9, 9, 9, 10, 10, 10, 11, 11, 11, 11, 10, 16, 35, 41, 43, 43, 44, 44, 44, 44, 44, 44, 44,
		42, 42, 42, 41, 41, 41, 41, 38, 35, 34, 34, 29, 29, 29, 29, 22, 20, 15, 12, 12, 12, 11, 11, 11, 10, 10, 10,
		10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 9, 9, 9, 10,
	}
)

// recorded plays pods that were recorded every 15 s.
func recorded(pods []int) func(time.Duration) int {
	return func(at time.Duration) int { return pods[min(int(at/(15*time.Second)), len(pods)-1)] }
}

// share is how much of a span has passed, from 0 to 1.
func share(at, span time.Duration) float64 {
	return max(0, min(1, float64(at)/float64(span)))
}

func between(share float64) int { return quiet + int(math.Round(share*(busy-quiet))) }

// randomBatches are of 4 to 24 pods, which run for one to four minutes, some two minutes apart; the
// same at each run.
func randomBatches() (out []batch) {
	random := rand.New(rand.NewPCG(14, 1))
	for at := time.Minute; at < loadTime-3*time.Minute; at += time.Duration((0.5 + random.Float64()) * float64(2*time.Minute)) {
		out = append(out, batch{
			at: at, pods: 4 + random.IntN(21), runs: time.Duration((1 + 3*random.Float64()) * float64(time.Minute)),
		})
	}
	return out
}
