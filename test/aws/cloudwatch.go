package awstest

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aws/smithy-go/encoding/cbor"
)

// answerCloudWatch says to moto, which only knows the query protocol, what a client says in CBOR. Answers that carry
// something are not translated: tests read metrics with [Cloud.Metrics].
func (c *Cloud) answerCloudWatch(ctx context.Context, call *Call) *answer {
	input, err := cbor.Decode(call.Body)
	if err != nil {
		return failure(call, http.StatusBadRequest, "SerializationException", err.Error())
	}
	if call.Operation != "PutMetricData" {
		return failure(call, http.StatusNotImplemented, "UnknownOperationException", "only PutMetricData is played, not "+call.Operation)
	}
	call.Params = url.Values{"Action": {call.Operation}, "Version": {"2010-08-01"}}
	flatten(call.Params, "", input)
	reply := c.query(ctx, call, "monitoring", call.Params)
	if reply.status != http.StatusOK {
		return failure(call, reply.status, "InvalidParameterValueException", "moto says: "+string(reply.body))
	}
	return &answer{http.StatusOK, cborType, cbor.Encode(cbor.Map{})}
}

// flatten adds a value to the parameters of the query protocol, where a list is Name.member.1 and so on.
func flatten(params url.Values, name string, value cbor.Value) {
	switch v := value.(type) {
	case cbor.Map:
		for key, member := range v {
			flatten(params, strings.TrimPrefix(name+"."+key, "."), member)
		}
	case cbor.List:
		for i, member := range v {
			flatten(params, name+".member."+strconv.Itoa(i+1), member)
		}
	case cbor.String:
		params.Set(name, string(v))
	case cbor.Bool:
		params.Set(name, strconv.FormatBool(bool(v)))
	case *cbor.Tag:
		if at, err := cbor.AsTime(v); err == nil {
			params.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	case *cbor.Nil, *cbor.Undefined:
	default:
		if number, err := cbor.AsFloat64(v); err == nil {
			params.Set(name, strconv.FormatFloat(number, 'g', -1, 64))
		} else if whole, err := cbor.AsInt64(v); err == nil {
			params.Set(name, strconv.FormatInt(whole, 10))
		}
	}
}

// Metric is a value that was put into CloudWatch.
type Metric struct {
	Namespace, Name string
	Dimensions      map[string]string
	Value           float64
	Unit            string
	Time            time.Time
}

// Metrics returns the values that CloudWatch took, in the order in which they came.
func (c *Cloud) Metrics() []Metric {
	var metrics []Metric
	for _, call := range c.Calls("PutMetricData") {
		if call.Done {
			metrics = append(metrics, metricsOf(call)...)
		}
	}
	return metrics
}

func metricsOf(call Call) []Metric {
	var metrics []Metric
	for i := 1; ; i++ {
		datum := "MetricData.member." + strconv.Itoa(i) + "."
		name := call.Params.Get(datum + "MetricName")
		if name == "" {
			return metrics
		}
		m := Metric{Namespace: call.Params.Get("Namespace"), Name: name, Unit: call.Params.Get(datum + "Unit"), Dimensions: map[string]string{}}
		m.Value, _ = strconv.ParseFloat(call.Params.Get(datum+"Value"), 64)
		m.Time, _ = time.Parse(time.RFC3339Nano, call.Params.Get(datum+"Timestamp"))
		for j := 1; ; j++ {
			dimension := datum + "Dimensions.member." + strconv.Itoa(j) + "."
			key := call.Params.Get(dimension + "Name")
			if key == "" {
				break
			}
			m.Dimensions[key] = call.Params.Get(dimension + "Value")
		}
		metrics = append(metrics, m)
	}
}
