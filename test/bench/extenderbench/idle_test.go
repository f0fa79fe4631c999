package extenderbench

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/foresail/foresail/adapter/scheduler/extender"
)

// serveIdle answers schedulers until the benchmark ends, and returns where: every node passes, and
// all are as good.
func serveIdle(b *testing.B) (address string) {
	b.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+extender.Prefix+"/filter", func(w http.ResponseWriter, r *http.Request) {
		names, err := namesOf(r)
		answer(w, extenderv1.ExtenderFilterResult{NodeNames: &names}, err)
	})
	mux.HandleFunc("POST "+extender.Prefix+"/prioritize", func(w http.ResponseWriter, r *http.Request) {
		names, err := namesOf(r)
		scores := make(extenderv1.HostPriorityList, len(names))
		for i, name := range names {
			scores[i] = extenderv1.HostPriority{Host: name, Score: extenderv1.MaxExtenderPriority}
		}
		answer(w, scores, err)
	})
	server := httptest.NewUnstartedServer(mux)
	server.EnableHTTP2 = true
	server.StartTLS()
	b.Cleanup(server.Close)
	address, ok := strings.CutPrefix(server.URL, "https://")
	require.True(b, ok, server.URL)
	return address
}

func namesOf(r *http.Request) ([]string, error) {
	var asked struct{ NodeNames *[]string } // not the pod, which is most of it
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		return nil, err
	}
	if asked.NodeNames == nil {
		return nil, errors.New("no names of nodes")
	}
	return *asked.NodeNames, nil
}

func answer(w http.ResponseWriter, content any, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	encoded, err := json.Marshal(content)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(encoded)))
	_, _ = w.Write(encoded)
}
