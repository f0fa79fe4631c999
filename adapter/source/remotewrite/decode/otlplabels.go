package decode

import (
	"slices"

	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/foresail/foresail/internal/promapi"
)

// Attributes of a resource that make labels of other names: these two as senders of remote write name them, the other
// three as Prometheus has them.
const (
	podAttribute, namespaceAttribute = "k8s.pod.name", "k8s.namespace.name"
	podLabel                         = "pod"

	serviceAttribute          = "service.name"
	serviceNamespaceAttribute = "service.namespace"
	serviceInstanceAttribute  = "service.instance.id"
)

// labelNamer gives labels the names that Prometheus' own endpoint does by default.
var labelNamer = otlptranslator.LabelNamer{
	UnderscoreLabelSanitization: true, //nolint:staticcheck // deprecated, but the default of Prometheus
	PreserveMultipleUnderscores: true,
}

// otlpLabeler makes the labels of data points from their own attributes and from those of their resource.
type otlpLabeler struct {
	*request // whose labels it sets

	tenancy   promapi.Tenancy
	podLabels PodLabels
	names     map[string]string // of labels, by attribute

	resource   []byte // as sent
	described  bool   // whether the next two belong to the resource
	promoted   Labels // labels of all its series, where their own attributes do not have the name
	target     Labels // labels of all its series, whatever their own attributes are
	scope      string
	identity   []string // names of labels that the resource alone gives to the series of the metric
	attributes Labels
}

// setResource begins the data points of a resource.
func (d *otlpLabeler) setResource(message []byte) { d.resource, d.described = message, false }

// prepare makes the labels that the resource gives to the series of a metric. label then adds those of a data point.
func (d *otlpLabeler) prepare(metric string) error {
	if err := d.describe(); err != nil {
		return err
	}
	d.identify(metric)
	return nil
}

// identify finds the labels that only the resource may give to series of a metric: those that name namespace and pod.
func (d *otlpLabeler) identify(metric string) {
	d.identity = append(d.identity[:0], d.tenancy.NamespaceLabel, podLabel)
	if d.podLabels == nil {
		return
	}
	d.labels = d.labels[:0]
	d.addResource(metric)
	namespace := d.tenancy.Namespace(d.labels.Get(d.tenancy.NamespaceLabel))
	d.identity = d.podLabels(metric, namespace, d.identity)
}

// label makes the labels of a data point. As in Prometheus its own attributes come before those of the resource, but
// for the job and the instance. Unlike there, the namespace and the pod are those of the resource or none: an
// application may set attributes of its points, and must not claim to be another one.
func (d *otlpLabeler) label(attributes pcommon.Map, metric string) (err error) {
	if d.labels, err = d.translate(d.labels[:0], attributes); err != nil {
		return err
	}
	d.labels = slices.DeleteFunc(d.labels, func(x Label) bool { return slices.Contains(d.identity, x.Name) })
	d.addResource(metric)
	return nil
}

// addResource adds the labels of all data points of a metric of the resource to those of one.
func (d *otlpLabeler) addResource(metric string) {
	for _, x := range d.promoted {
		if d.labels.Get(x.Name) == "" {
			d.labels = d.labels.set(x)
		}
	}
	for _, x := range d.target {
		d.labels = d.labels.set(x)
	}
	if d.scope != "" {
		d.labels = d.labels.set(Label{"otel_scope_name", d.scope})
	}
	d.labels = append(d.labels, Label{MetricName, metric})
}

// describe makes the labels that the resource gives to its series.
func (d *otlpLabeler) describe() error {
	if d.described {
		return nil
	}
	kept, err := d.resourceAttributes()
	if err != nil {
		return err
	}
	resource, err := unmarshalOTLP(kept, otlpResourceMetrics, otlpResource)
	if err != nil {
		return err
	}
	attributes := resource.Resource().Attributes()
	attributes.RemoveIf(func(name string, v pcommon.Value) bool {
		_, err := d.labelName(name)
		return err != nil || len(v.AsString()) > d.limits.LabelValueBytes
	})
	if d.promoted, err = d.translate(d.promoted[:0], attributes); err != nil {
		return Malformed(err)
	}
	d.addTarget(attributes)
	d.described = true
	return nil
}

// addTarget makes the labels that identify the target of the resource.
func (d *otlpLabeler) addTarget(attributes pcommon.Map) {
	d.target = d.target[:0]
	if pod, ok := attributes.Get(podAttribute); ok {
		d.target = append(d.target, Label{podLabel, pod.AsString()})
	}
	if namespace, ok := attributes.Get(namespaceAttribute); ok {
		d.target = append(d.target, Label{d.tenancy.NamespaceLabel, namespace.AsString()})
	}
	if job, ok := attributes.Get(serviceAttribute); ok {
		name := job.AsString()
		if namespace, ok := attributes.Get(serviceNamespaceAttribute); ok {
			name = namespace.AsString() + "/" + name
		}
		d.target = append(d.target, Label{"job", name})
	}
	if instance, ok := attributes.Get(serviceInstanceAttribute); ok {
		d.target = append(d.target, Label{"instance", instance.AsString()})
	}
}

// resourceAttributes returns the attributes of the resource that can be labels. Others are left out: no
// application can be expected to have a short command line.
func (d *otlpLabeler) resourceAttributes() ([]byte, error) {
	d.kept = d.kept[:0]
	limit, n := d.limits.LabelNameBytes+d.limits.LabelValueBytes, 0
	for f, err := range fields(d.resource) {
		switch {
		case err != nil:
			return nil, Malformed(err)
		case f.number == otlpResourceAttributes && len(f.value) <= limit && n <= d.limits.Labels:
			d.kept = append(d.kept, f.whole...)
			n++
		}
	}
	return d.kept, nil
}

// translate appends the labels that attributes make. Values whose labels have the same name are joined in the order of
// their attributes' names.
func (d *otlpLabeler) translate(to Labels, attributes pcommon.Map) (Labels, error) {
	d.attributes = d.attributes[:0]
	for name, v := range attributes.All() {
		d.attributes = append(d.attributes, Label{name, v.AsString()})
	}
	for _, x := range d.attributes.normal() {
		name, err := d.labelName(x.Name)
		if err != nil {
			return to, err
		}
		if name == MetricName {
			continue
		}
		if before := to.Get(name); before != "" {
			x.Value = before + ";" + x.Value
		}
		to = to.set(Label{name, x.Value})
	}
	return to, nil
}

// Limits of the names that are kept.
const (
	keptNames     = 1024
	keptNameBytes = 256
)

// labelName returns the name of the label that an attribute makes.
func (d *otlpLabeler) labelName(attribute string) (string, error) {
	if name, ok := d.names[attribute]; ok {
		return name, nil
	}
	name, err := labelNamer.Build(attribute)
	if err != nil || len(attribute) > keptNameBytes {
		return name, err
	}
	if len(d.names) >= keptNames {
		clear(d.names)
	}
	if d.names == nil {
		d.names = map[string]string{}
	}
	d.names[attribute] = name
	return name, nil
}

func (d *otlpLabeler) reset() {
	clear(d.promoted[:cap(d.promoted)])
	clear(d.target[:cap(d.target)])
	clear(d.attributes[:cap(d.attributes)])
	d.resource, d.described, d.scope = nil, false, ""
}
