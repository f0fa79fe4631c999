package awstest

import (
	"bytes"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The names of services in calls and faults.
const (
	EC2        = "ec2"
	DynamoDB   = "dynamodb"
	SQS        = "sqs"
	CloudWatch = "cloudwatch"
)

// Call is a call of a client.
type Call struct {
	Service   string
	Operation string     // such as RunInstances
	Region    string     // of its signature
	Params    url.Values // of EC2 and CloudWatch, such as InstanceId.1
	Body      []byte     // as sent: JSON of DynamoDB and SQS
	Began     time.Time
	Ended     time.Time // zero while it is in progress
	Status    int       // of the answer; 0 = none, or not yet
	Done      bool      // the service received it, even if the client got an error
}

// parse returns the call of a request, whose body is read already.
func parse(r *http.Request, body []byte) *Call {
	call := &Call{Body: body, Began: time.Now()}
	// Credential=<key>/<date>/<region>/<service>/aws4_request
	if _, after, found := strings.Cut(r.Header.Get("Authorization"), "Credential="); found {
		credential, _, _ := strings.Cut(after, ",")
		if scope := strings.Split(credential, "/"); len(scope) == 5 {
			call.Region, call.Service = scope[2], scope[3]
		}
	}
	if call.Service == "monitoring" {
		call.Service = CloudWatch
	}
	target := r.Header.Get("X-Amz-Target")
	switch {
	case target != "":
		call.Operation = target[strings.LastIndex(target, ".")+1:]
	case strings.Contains(r.URL.Path, "/operation/"):
		call.Operation = path.Base(r.URL.Path)
	default:
		call.Params, _ = url.ParseQuery(string(body)) // moto returns the error
		call.Operation = call.Params.Get("Action")
	}
	return call
}

// recorder records the calls of clients.
type recorder struct {
	mu    sync.Mutex
	calls []*Call
}

// begin records a call, and returns a copy to work with.
func (r *recorder) begin(call *Call) Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, call)
	return *call
}

// end records the end of a call; a nil reply was not sent.
func (r *recorder) end(call *Call, params url.Values, done bool, reply *answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	call.Ended, call.Params, call.Done = time.Now(), params, done
	if reply != nil {
		call.Status = reply.status
	}
}

// Calls returns the calls of an operation in order of arrival, or all for "".
func (r *recorder) Calls(operation string) []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	var calls []Call
	for _, call := range r.calls {
		if operation == "" || call.Operation == operation {
			calls = append(calls, *call)
		}
	}
	return calls
}

// Forget drops the recorded calls.
func (r *recorder) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = nil
}

// Metrics returns the values that CloudWatch received, in order of arrival.
func (r *recorder) Metrics() []Metric {
	var metrics []Metric
	for _, call := range r.Calls("PutMetricData") {
		if call.Done {
			metrics = append(metrics, metricsOf(call)...)
		}
	}
	return metrics
}

// values returns the members of a list of the query protocol in order: InstanceId.1, InstanceId.2 and so on.
func values(params url.Values, list string) []string {
	var keys []string
	for key := range params {
		if strings.HasPrefix(key, list+".") {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	all := make([]string, len(keys))
	for i, key := range keys {
		all[i] = params.Get(key)
	}
	return all
}

// answer is the answer to a call.
type answer struct {
	status      int
	contentType string
	body        []byte
}

func (a *answer) writeTo(w http.ResponseWriter) {
	w.Header().Set("Content-Type", a.contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	if strings.HasPrefix(a.contentType, cborType) {
		w.Header().Set("Smithy-Protocol", "rpc-v2-cbor")
	}
	w.WriteHeader(a.status)
	_, _ = bytes.NewReader(a.body).WriteTo(w) // the client may be gone
}
