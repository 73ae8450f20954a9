# frozen_string_literal: true

# Evaluates ERB templates for nstance-erb.
#
# In: one JSON object a line on standard input: `templates` (`name`, `text`), `context` and `dns` (JSON
# texts), `time_limit` (seconds for each template), `memory_limit` (bytes), `output_limit` (bytes). Out: first a
# line `{"ready": true}`; then, for each request, one line `{"results": [...]}` in the order of the
# templates, each `{"output": ...}` or `{"error": {"class", "message", "line"}}`.
# Must not: evaluate a template in this process. A fork does that, and is killed at the end.

abort "Ruby #{RUBY_VERSION} is too old, 3.0 or newer is required" if RUBY_VERSION.to_f < 3.0

require 'rbconfig'

# Newer Rubies move parts of the standard library to bundled gems, which `--disable-gems` hides.
$LOAD_PATH.concat(
  Dir["#{RbConfig::CONFIG['rubylibprefix']}/gems/#{RbConfig::CONFIG['ruby_version']}/gems/*/lib"].sort
)

require 'erb'
require 'json'
require 'ostruct'
require 'shellwords'
require 'yaml'

class Object
  def blank?
    respond_to?(:empty?) ? !!empty? : !self
  end

  def present?
    !blank?
  end

  def presence
    self if present?
  end
end

class String
  def blank?
    match?(/\A[[:space:]]*\z/)
  end
end

# Templates name these in `rescue` clauses, so the names are BOSH's.
module Bosh
  module Template
    class UnknownProperty < StandardError
      attr_reader :name

      def initialize(names)
        @name = names
        super("Can't find property '#{names}'")
      end
    end

    class UnknownLink < StandardError
      attr_reader :name

      def initialize(name)
        @name = name
        super("Can't find link '#{name}'")
      end
    end

    # `p` and `if_p` over the properties of whatever includes this.
    module PropertyHelper
      # Indexes step by step without a look at the types: a string on the path is indexed as a
      # string, an integer as an integer, and whatever that raises is the template's error.
      def lookup_property(collection, name)
        return nil if collection.nil?

        name.split('.').reduce(collection) do |value, key|
          inner = value[key]
          return nil if inner.nil?

          inner
        end
      end

      # Exactly two arguments make the second one the fallback; three are an error without one.
      def p(*args)
        names = Array(args.first)
        names.each do |name|
          value = lookup_property(own_properties, name)
          return value unless value.nil?
        end
        raise UnknownProperty.new(names) unless args.length == 2

        args.last
      end

      def if_p(*names)
        values = []
        names.each do |name|
          value = lookup_property(own_properties, name)
          return PendingElse.new(self) if value.nil?

          values << value
        end
        yield(*values)
        SettledElse.new
      end

      # Ruby's messages about missing methods have this: without addresses, and without properties.
      def inspect
        "#<#{self.class}>"
      end
    end

    # What a condition that didn't hold returns: the next branch is tried.
    class PendingElse
      def initialize(scope)
        @scope = scope
      end

      def else
        yield
      end

      def else_if_p(*names, &block)
        @scope.if_p(*names, &block)
      end

      def else_if_link(name, &block)
        @scope.if_link(name, &block)
      end
    end

    # What a condition that held returns: no other branch runs.
    class SettledElse
      def else; end

      def else_if_p(*_names)
        self
      end

      def else_if_link(_name)
        self
      end
    end

    class EvaluationLinkInstance
      include PropertyHelper

      attr_reader :name, :index, :id, :az, :address, :properties, :bootstrap

      def initialize(instance)
        @name, @index, @id, @az, @address, @properties, @bootstrap =
          %w[name index id az address properties bootstrap].map { |member| instance[member] }
      end

      private

      def own_properties
        @properties
      end
    end

    class EvaluationLink
      include PropertyHelper

      attr_reader :instances, :properties

      def initialize(link, dns_encoder)
        @instances = link['instances'].map { |instance| EvaluationLinkInstance.new(instance) }
        @properties = link['properties']
        @link = link
        @dns_encoder = dns_encoder
      end

      def address(criteria = {})
        fixed = @link.key?('address')
        raise NotImplementedError, 'link.address requires bosh director' if @dns_encoder.nil? && !fixed

        query = criteria.merge(provider)
        fixed ? @link['address'] : @dns_encoder.encode(query, short: @link['use_short_dns_addresses'])
      end

      private

      def own_properties
        @properties
      end

      # The part of a DNS query that says whose address it is.
      def provider
        by_link = @link['use_link_dns_names']
        {
          group_type: by_link ? 'link' : 'instance-group',
          group_name: @link[by_link ? 'group_name' : 'instance_group'],
          default_network: @link['default_network'],
          deployment_name: @link['deployment_name'],
          root_domain: @link['domain']
        }
      end
    end

    # What a template sees as `self`.
    class EvaluationContext
      include PropertyHelper

      # The class of `spec` and all in it: `methods(false)` lists the members.
      class BackCompatOpenStruct < OpenStruct
        def methods(regular = true)
          regular ? super : marshal_dump.keys
        end
      end

      attr_reader :name, :index, :raw_properties

      # `without` names members that `spec` keeps as hashes.
      def initialize(spec, dns_encoder, without)
        @raw_spec = spec
        @without = without
        @name = spec['job']['name'] if spec['job'].is_a?(Hash)
        @index = spec['index']
        @raw_properties = spec['properties'] || {}
        @links = spec['links'] || {}
        @dns_encoder = dns_encoder
      end

      # Open structs take milliseconds to make, so they are made for those who ask.
      def spec
        @spec ||= begin
          members = open_struct(@raw_spec.except(*@without), BackCompatOpenStruct)
          @raw_spec.slice(*@without).each { |name, member| members[name] = member }
          members
        end
      end

      def properties
        @properties ||= open_struct(@raw_properties, OpenStruct)
      end

      def link(name)
        found = lookup_property(@links, name)
        raise UnknownLink.new(name) if found.nil? || !found.has_key?('instances')

        EvaluationLink.new(found, @dns_encoder)
      end

      def if_link(name)
        found = lookup_property(@links, name)
        return PendingElse.new(self) if found.nil? || !found.has_key?('instances')

        yield EvaluationLink.new(found, @dns_encoder)
        SettledElse.new
      end

      # A binding in which `def` makes methods of this object alone, not of the next template's.
      def get_binding
        instance_eval('def template_binding; binding; end', __FILE__, __LINE__)
        template_binding
      end

      private

      def own_properties
        @raw_properties
      end

      def open_struct(value, kind)
        case value
        when Hash then kind.new(value.transform_values { |member| open_struct(member, kind) })
        when Array then value.map { |item| open_struct(item, kind) }
        else value
        end
      end
    end
  end

  module Director
    class DnsInvalidCanonicalName < StandardError; end

    # The Director's names for the members of a link. `tables` has the numbers that the Director
    # assigned: `azs`, `networks`, `instances` by name, and `groups` as a list.
    class DnsEncoder
      STATUSES = { 'default' => 0, 'unhealthy' => 1, 'healthy' => 3, 'all' => 4 }.freeze
      HEALTH_CHECKS = { 'synchronous' => 1, 'asynchronous' => 0 }.freeze

      def initialize(tables)
        @tables = tables
      end

      def encode(query, short:)
        host = query[:uuid] unless short
        host ||= "q-#{slug(query, short)}"
        group = short ? [group_label(query)] : long_labels(query)
        [host, *group, query[:root_domain]].join('.')
      end

      private

      def slug(query, short)
        parts = (query[:azs] || []).map { |az| "a#{number('azs', az, 'AZ')}" }
        parts << "s#{STATUSES.fetch(query[:status], 0)}"
        check = HEALTH_CHECKS[query[:initial_health_check]]
        parts << "y#{check}" if check
        if short
          parts << "m#{number('instances', query[:uuid], 'instance UUID')}" if query[:uuid]
          parts << "n#{number('networks', query[:default_network], 'Network')}" if query[:default_network]
        end
        parts.sort.join
      end

      def number(table, name, kind)
        return if name.nil?

        (@tables[table] || {})[name] || raise("Unknown #{kind}: '#{name}'")
      end

      # A group without a number has an empty one, as in the Director.
      def group_label(query)
        wanted = query.values_at(:group_type, :group_name, :deployment_name)
        group = (@tables['groups'] || []).find { |g| g.values_at('type', 'name', 'deployment') == wanted }
        "q-g#{group && group['id']}"
      end

      def long_labels(query)
        query.values_at(:group_name, :default_network, :deployment_name).map { |name| label(name) }
      end

      def label(name)
        label = name.downcase.tr('_', '-').gsub(/[^a-z0-9-]/, '')
        edge = { 'start' => /^-/, 'end' => /-$/ }.find { |_, pattern| label.match?(pattern) }
        return label unless edge

        raise DnsInvalidCanonicalName,
              "Invalid DNS canonical name '#{label}', cannot #{edge.first} with a hyphen"
      end
    end
  end
end

# The worker: answers requests, each by a fork. A module, so that templates see none of its methods.
module NstanceErb
  # How soon the end of a fork is seen whose own children hold its pipe open, in seconds.
  POLL = 0.05
  # JSON writes a control character as six.
  LARGEST_ESCAPE = 6

  @compiled = {}

  class << self
    def serve(requests, answers)
      @requests = requests
      @answers = answers
      answer({ ready: true })
      while (line = requests.gets)
        answer({ results: results(JSON.parse(line, max_nesting: false)) })
      end
    end

    private

    def answer(object)
      @answers.write(JSON.generate(object), "\n")
      @answers.flush
    end

    # A fork that breaks loses the template it was at; another fork goes on with the next one.
    def results(request)
      templates = request['templates']
      templates.each { |template| compile(template['text']) }
      done = []
      done.concat(fork_results(request, templates.drop(done.size))) while done.size < templates.size
      done
    end

    # Templates are compiled before the fork, so that all forks share them. Compiling runs nothing.
    def compile(text)
      @compiled[text] ||= begin
        ERB.new(text, trim_mode: '-')
      rescue StandardError => e
        e
      end
    end

    # The results of the first templates, one or more. Fewer than all if the last one broke the fork.
    def fork_results(request, templates)
      reader, writer = IO.pipe
      pid = fork do
        reader.close
        evaluate_all(request, templates, writer)
      end
      writer.close
      collect(Fork.new(pid, reader), request, templates.size)
    end

    def collect(child, request, count)
      done = []
      largest = request['output_limit'] * LARGEST_ESCAPE + 4096
      while done.size < count
        line = child.next_line(@requests, request['time_limit'], largest)
        result = line.is_a?(String) ? parse_result(line) : nil
        return done << broken(line, request) if result.nil?

        done << result
      end
      done
    ensure
      child.kill
    end

    # A template can write to its fork's pipe, so nothing there is trusted.
    def parse_result(line)
      result = JSON.parse(line.force_encoding(Encoding::UTF_8))
      result if result.is_a?(Hash) && (result['output'].is_a?(String) || result['error'].is_a?(Hash))
    rescue StandardError
      nil
    end

    def broken(reason, request)
      if reason == :late
        return error('TimeLimitExceeded', format('the template ran longer than %g s', request['time_limit']))
      end

      memory = mebibytes(request['memory_limit'])
      error('ProcessEnded', "the template ended the Ruby process, or used more than #{memory} of memory")
    end

    # What the fork does. Never returns: no `at_exit` of a template runs.
    def evaluate_all(request, templates, writer)
      Process.setsid
      $stdin.reopen(File::NULL)
      @answers.close
      limit(:CORE, 0)
      limit(:AS, request['memory_limit'])
      # Ends a fork that outlives a killed worker.
      limit(:CPU, (request['time_limit'] * templates.size).ceil + 1)
      templates.each do |template|
        writer.write(JSON.generate(evaluate(request, template)), "\n")
      end
      exit!(0)
    rescue Exception
      exit!(1)
    end

    # Systems without one of the limits do without it.
    def limit(resource, value)
      Process.setrlimit(resource, value)
    rescue SystemCallError, NotImplementedError, ArgumentError, RangeError
      nil
    end

    def evaluate(request, template)
      name = template['name']
      erb = compile(template['text'])
      raise erb if erb.is_a?(Exception)

      erb.filename = name
      check_output(erb.result(context(request, template['text']).get_binding), request)
    rescue NoMemoryError => e
      memory = mebibytes(request['memory_limit'])
      error('NoMemoryError', "the template needs more than #{memory} of memory", line(e, name))
    rescue Exception => e
      error(class_name(e), message(e), line(e, name))
    end

    # Parsed anew for each template, which may change what it likes.
    def context(request, text)
      encoder = Bosh::Director::DnsEncoder.new(JSON.parse(request['dns'])) if request['dns']
      # A link may have thousands of instances, and few templates read them through `spec`.
      without = text.match?(/\blinks\b/) ? [] : ['links']
      context = Bosh::Template::EvaluationContext.new(
        JSON.parse(request['context'], max_nesting: false), encoder, without
      )
      # BOSH makes both before it evaluates, so they don't see later changes to `raw_properties`.
      context.spec if text.match?(/\bspec\b/)
      context.properties if text.match?(/\bproperties\b/)
      context
    end

    def check_output(output, request)
      limit = request['output_limit']
      return error('OutputLimitExceeded', "the output is larger than #{mebibytes(limit)}") if output.bytesize > limit

      output = output.dup.force_encoding(Encoding::UTF_8)
      output.valid_encoding? ? { output: output } : error('EncodingError', 'the output is not valid UTF-8')
    end

    def error(class_name, message, line = nil)
      { error: { class: class_name, message: message, line: line } }
    end

    # Without the modules around BOSH's classes, and around those that a template defines.
    def class_name(exception)
      without_singleton(exception.class.to_s).sub(/\ABosh::(Template::(EvaluationContext::)?|Director::)/, '')
    end

    def message(exception)
      without_singleton(String.new(exception.message, encoding: Encoding::UTF_8).scrub)
    rescue StandardError
      exception.class.to_s
    end

    # In BOSH, what a template defines belongs to the class. `get_binding` makes it the object's.
    def without_singleton(text)
      text.gsub(/#<Class:(0x\h+|#<Bosh::Template::EvaluationContext[^>]*>)>(?=::)/, 'Bosh::Template::EvaluationContext')
    end

    # The template's line nearest to where the exception was raised. That of a syntax error is
    # only in its message.
    def line(exception, name)
      places = exception.backtrace || []
      places = [exception.message, *places] if exception.is_a?(SyntaxError)
      pattern = /\A#{Regexp.escape(name)}:(\d+)/
      places.filter_map { |place| place[pattern, 1] }.first&.to_i
    end

    def mebibytes(bytes)
      format('%g MiB', bytes / 1024.0 / 1024)
    end
  end

  # A fork, seen from the worker.
  class Fork
    def initialize(pid, reader)
      @pid = pid
      @reader = reader
      @unread = String.new
      @lines = []
      @ended = false
    end

    # The next line that it writes; `:late` after `seconds`, `:ended` if there is none to come.
    # Ends the worker if `requests` has something to read: that is its end, so nobody waits.
    def next_line(requests, seconds, largest)
      deadline = now + seconds
      while @lines.empty?
        left = deadline - now
        return :late if left <= 0
        return :ended if @unread.bytesize > largest

        ready, = IO.select([@reader, requests], nil, nil, @ended ? 0 : [left, POLL].min)
        if ready.nil?
          return :ended if @ended

          @ended = !Process.wait(@pid, Process::WNOHANG).nil?
        elsif ready.include?(requests)
          kill
          exit!(0)
        else
          return :ended unless read
        end
      end
      @lines.shift
    end

    # Kills the fork with all the processes that it started and that stayed in its group.
    def kill
      [-@pid, (@pid unless @ended)].compact.each do |target|
        Process.kill(:KILL, target)
      rescue SystemCallError
        next
      end
      Process.wait(@pid) unless @ended
      @ended = true
      @reader.close
    end

    private

    # Whether more may come.
    def read
      chunk = @reader.read_nonblock(1 << 16, exception: false)
      return !chunk.nil? unless chunk.is_a?(String)

      @unread << chunk
      return true unless chunk.include?("\n")

      *@lines, @unread = @unread.split("\n", -1)
      true
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end

# The answers go to a copy of standard output that only this process has; what else is written to
# standard output or error goes nowhere.
answers = $stdout.dup
[$stdout, $stderr].each { |stream| stream.reopen(File::NULL, 'w') }
# Ctrl-C is for nstance, whose end closes standard input.
trap('INT', 'IGNORE')
NstanceErb.serve($stdin, answers)
