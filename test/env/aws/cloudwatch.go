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

// cloudWatch translates a call in CBOR to the query protocol, which is the only one that moto
// supports. Answers with content are not translated: tests read metrics with [Cloud.Metrics].
func cloudWatch(ctx context.Context, b *backend, call *Call) *answer {
	input, err := cbor.Decode(call.Body)
	if err != nil {
		return failure(call, http.StatusBadRequest, "SerializationException", err.Error())
	}
	if call.Operation != "PutMetricData" {
		return failure(
			call, http.StatusNotImplemented, "UnknownOperationException",
			"only PutMetricData is supported, not "+call.Operation,
		)
	}
	call.Params = url.Values{"Action": {call.Operation}, "Version": {"2010-08-01"}}
	flatten(call.Params, "", input)
	reply := b.query(ctx, call, "monitoring", call.Params)
	if reply.status != http.StatusOK {
		return failure(call, reply.status, "InvalidParameterValueException", "moto: "+string(reply.body))
	}
	return &answer{http.StatusOK, cborType, cbor.Encode(cbor.Map{})}
}

// flatten adds a value to the parameters of the query protocol, in which lists are Name.member.1 and so on.
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

// Metric is a value that CloudWatch received.
type Metric struct {
	Namespace, Name string
	Dimensions      map[string]string
	Value           float64
	Unit            string
	Time            time.Time
}

func metricsOf(call Call) []Metric {
	var metrics []Metric
	for i := 1; ; i++ {
		datum := "MetricData.member." + strconv.Itoa(i) + "."
		name := call.Params.Get(datum + "MetricName")
		if name == "" {
			return metrics
		}
		m := Metric{
			Namespace: call.Params.Get("Namespace"), Name: name, Unit: call.Params.Get(datum + "Unit"),
			Dimensions: map[string]string{},
		}
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
