package apiservice

import (
	"slices"
	"sync"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// serving is the serving certificate of this replica. It is a dynamiccertificates.CertKeyContentProvider.
type serving struct {
	mu        sync.Mutex
	cert, key []byte
	listeners []dynamiccertificates.Listener
}

var _ dynamiccertificates.CertKeyContentProvider = (*serving)(nil)

func (s *serving) Name() string { return "foresail-external-metrics" }

func (s *serving) CurrentCertKeyContent() (cert, key []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cert, s.key
}

func (s *serving) AddListener(l dynamiccertificates.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners = append(s.listeners, l)
}

func (s *serving) set(cert, key []byte) {
	s.mu.Lock()
	s.cert, s.key = cert, key
	listeners := slices.Clone(s.listeners)
	s.mu.Unlock()
	for _, l := range listeners {
		l.Enqueue()
	}
}
