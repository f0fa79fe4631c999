package awstest

import (
	"bytes"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The names of services in calls and faults.
const (
	EC2        = "ec2"
	DynamoDB   = "dynamodb"
	SQS        = "sqs"
	CloudWatch = "cloudwatch"
)

// Call is a call that a client made.
type Call struct {
	Service   string
	Operation string     // such as RunInstances
	Region    string     // that it was signed for
	Params    url.Values // of EC2, such as InstanceId.1; of CloudWatch too
	Body      []byte     // as it was sent: JSON of DynamoDB and SQS
	Began     time.Time
	Ended     time.Time // zero while it goes on
	Status    int       // of the answer; 0 while there is none, or if it was withheld
	Done      bool      // the service got it, whatever the client was told
}

// parse tells what a call is. The body is read already.
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
		call.Params, _ = url.ParseQuery(string(body)) // what cannot be read is for moto to say
		call.Operation = call.Params.Get("Action")
	}
	return call
}

// Calls returns the calls so far, in the order in which they came: those of an operation, or all for "".
func (c *Cloud) Calls(operation string) []Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	var calls []Call
	for _, call := range c.calls {
		if operation == "" || call.Operation == operation {
			calls = append(calls, *call)
		}
	}
	return calls
}

// Forget drops the calls that were recorded.
func (c *Cloud) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = nil
}

// values returns the members of a list of the query protocol: of InstanceId.1, InstanceId.2 and so on, in order.
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

// answer is what a client is told.
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
	_, _ = bytes.NewReader(a.body).WriteTo(w) // a client that is gone hears nothing
}
