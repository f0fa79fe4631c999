package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/foresail/foresail/test/env/stack"
)

// moment is how the application stood at a time since what counts began.
type moment struct {
	at time.Duration
	stack.State
	requests int64 // that have come to the proxy
	inFlight int64 // at the proxy
}

// watch looks each second, from the first request that counts until ctx ends.
func (s *stage) watch(ctx context.Context, front *proxy) ([]moment, error) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	var moments []moment
	for {
		select {
		case <-ctx.Done():
			return moments, nil
		case <-ticker.C:
		}
		at, begun := front.since()
		if !begun {
			continue
		}
		state, err := s.stack.Look(ctx, stack.App{Namespace: namespace, Name: appName})
		if ctx.Err() != nil {
			return moments, nil
		}
		if err != nil {
			return moments, err
		}
		moments = append(moments, moment{at: at, State: state, requests: front.passed.Load(),
			inFlight: front.inFlight.Load()})
	}
}

// clip returns the moments up to the end of the profile: k6 waits a while longer for the last answers.
func clip(moments []moment, end time.Duration) []moment {
	for i, m := range moments {
		if m.at > end {
			return moments[:i]
		}
	}
	return moments
}

// podSeconds is the replicas asked for over time. A moment stands for the time since the one before.
func podSeconds(moments []moment) float64 {
	sum, before := 0.0, time.Duration(0)
	for _, m := range moments {
		sum += float64(m.Replicas) * (m.at - before).Seconds()
		before = m.at
	}
	return sum
}

// writeMoments writes a play second by second as CSV.
func writeMoments(w io.Writer, p profile, moments []moment) error {
	out := csv.NewWriter(w)
	rows := [][]string{{"second", "rate", "requests", "in_flight", "replicas", "ready", "desired"}}
	for _, m := range moments {
		rows = append(rows, []string{
			fmt.Sprintf("%.1f", m.at.Seconds()), fmt.Sprintf("%.1f", p.load.Rate(m.at)),
			strconv.FormatInt(m.requests, 10), strconv.FormatInt(m.inFlight, 10),
			strconv.Itoa(m.Replicas), strconv.Itoa(m.Ready), strconv.Itoa(m.Desired),
		})
	}
	return out.WriteAll(rows)
}
