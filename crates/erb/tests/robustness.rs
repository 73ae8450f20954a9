//! Templates that misbehave harm no other template, and no other request.

mod common;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nstance_erb::{Options, RenderError, Renderer, Request, Template, TemplateError};

type Results = Vec<Result<String, TemplateError>>;

/// One worker, so that each request meets what the one before left behind.
fn renderer() -> Renderer {
    Renderer::new(Options {
        time_limit: Duration::from_mins(1),
        memory_limit: 256 * 1024 * 1024,
        workers: 1,
        ..Options::default()
    })
}

fn impatient() -> Renderer {
    Renderer::new(Options {
        time_limit: Duration::from_secs(1),
        workers: 1,
        ..Options::default()
    })
}

fn try_render(renderer: &Renderer, context: &str, texts: &[&str]) -> Result<Results, RenderError> {
    let names: Vec<String> = (0..texts.len()).map(|i| format!("{i}.erb")).collect();
    let templates: Vec<Template<'_>> = names
        .iter()
        .zip(texts)
        .map(|(name, text)| Template { name, text })
        .collect();
    renderer.render(&Request {
        context,
        dns: None,
        templates: &templates,
    })
}

fn render(renderer: &Renderer, texts: &[&str]) -> Results {
    try_render(
        renderer,
        r#"{"properties": {"a": "x", "list": [1]}}"#,
        texts,
    )
    .expect("the request has results")
}

/// Renders `text` between two well-behaved templates, checks these, and returns its own result.
fn between(renderer: &Renderer, text: &str) -> Result<String, TemplateError> {
    let mut results = render(
        renderer,
        &["before <%= p('a') %>", text, "after <%= p('a') %>"],
    );
    assert_eq!(results[0].as_deref(), Ok("before x"), "{text}");
    assert_eq!(results[2].as_deref(), Ok("after x"), "{text}");
    results.swap_remove(1)
}

fn class_of(result: Result<String, TemplateError>) -> String {
    result.expect_err("the template fails").class
}

/// A file that no other test uses.
fn scratch(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    File::create(&path).expect("the folder is writable");
    path
}

#[test]
fn endless_templates_end_at_the_time_limit() {
    if !common::is_installed() {
        return;
    }
    let renderer = impatient();
    for text in [
        "<% loop {} %>",
        "<% sleep %>",
        "<% begin; sleep; rescue Exception; retry; end %>",
    ] {
        let error = between(&renderer, text).expect_err("it has no end");
        assert_eq!(error.class, "TimeLimitExceeded", "{text}");
        assert_eq!(
            error.to_string(),
            "Error filling in template '1.erb' (the template ran longer than 1 s)"
        );
    }
}

#[test]
fn endless_allocation_ends_at_the_memory_limit() {
    if !common::is_installed() {
        return;
    }
    let renderer = renderer();
    for text in [
        "<% s = 'x' * 1024; loop { s << s } %>",
        "<% a = []; loop { a << 'x' * 1_000_000 } %>",
        "<% a = []; loop { a << Object.new } %>",
        "<% loop { %>text<% } %>",
    ] {
        let error = between(&renderer, text).expect_err("memory is limited");
        assert!(
            error.message.contains("256 MiB of memory"),
            "{text}: {error}"
        );
        assert!(["NoMemoryError", "ProcessEnded"].contains(&error.class.as_str()));
    }
}

#[test]
fn templates_that_exit_fail_alone() {
    if !common::is_installed() {
        return;
    }
    let renderer = renderer();
    for (text, class) in [
        ("<% exit %>", "SystemExit"),
        ("<% abort 'x' %>", "SystemExit"),
        ("<% at_exit { loop {} }; exit %>", "SystemExit"),
        ("<% exit! %>", "ProcessEnded"),
        ("<% exit!(0) %>", "ProcessEnded"),
        ("<% Process.kill(:KILL, $$) %>", "ProcessEnded"),
        ("<% Process.kill(:TERM, 0); sleep %>", "SignalException"),
        ("<% Thread.exit %>", "SystemExit"),
        ("<% raise Interrupt %>", "Interrupt"),
        ("<% class Own < RuntimeError; end; raise Own %>", "Own"),
        ("<% JSON.parse('{') %>", "JSON::ParserError"),
        ("<% throw :x %>", "UncaughtThrowError"),
        ("<% return 1 %>", "LocalJumpError"),
        ("<% def f; f; end; f %>", "SystemStackError"),
        ("<% exec 'true' %>", "ProcessEnded"),
    ] {
        assert_eq!(class_of(between(&renderer, text)), class, "{text}");
    }
}

#[test]
fn processes_of_a_template_end_with_its_request() {
    if !common::is_installed() {
        return;
    }
    let renderer = renderer();
    let lock = scratch("held-by-a-fork");
    let held = format!(
        "<% 4.times {{ fork {{ sleep }} }}
        reader, writer = IO.pipe
        fork {{ f = File.open({lock:?}); f.flock(File::LOCK_EX); writer.write('x'); sleep }}
        reader.read(1) %>forked"
    );
    assert_eq!(between(&renderer, &held).as_deref(), Ok("forked"));
    // Blocks for as long as the template's fork lives.
    File::open(&lock)
        .and_then(|file| file.lock())
        .expect("the file can be locked");

    let orphaned = "<% fork { sleep }; exit! %>";
    assert_eq!(class_of(between(&renderer, orphaned)), "ProcessEnded");
}

#[test]
fn standard_streams_lead_nowhere() {
    if !common::is_installed() {
        return;
    }
    let renderer = renderer();
    for text in [
        "<% puts '{}'; $stdout.puts '{}'; STDERR.puts 'x'; STDOUT.syswrite(\"{}\\n\") %>done",
        "<% IO.for_fd(1, autoclose: false).syswrite(\"{}\\n\"); system('echo {}') %>done",
        "<% STDOUT.reopen('/dev/null'); STDOUT.close; STDIN.close; STDERR.close %>done",
        "<%= $stdin.read %>done",
    ] {
        assert_eq!(between(&renderer, text).as_deref(), Ok("done"), "{text}");
    }
    // Reaches the pipe of its own fork.
    let results = render(
        &renderer,
        &["<% ObjectSpace.each_object(IO) { |io| io.write(\"[]\\n\") rescue 0 } %>"],
    );
    assert_eq!(
        results[0].as_ref().expect_err("not a result").class,
        "ProcessEnded"
    );
    assert_eq!(render(&renderer, &["<%= 1 %>"])[0].as_deref(), Ok("1"));
}

#[test]
fn nothing_is_left_for_other_requests() {
    if !common::is_installed() {
        return;
    }
    let renderer = renderer();
    let leave = "<% $left = 1; Left = 1; ENV['LEFT'] = '1'
        class String; def upcase; 'broken'; end; end
        Object.send(:define_method, :left) { 1 }
        JSON.singleton_class.send(:define_method, :generate) { |*| '' }
        Process.singleton_class.send(:remove_method, :clock_gettime) %>left";
    let _ = render(&renderer, &[leave]);
    let look = "<%= [$left.inspect, defined?(Left).inspect, defined?(left).inspect, \
                'a'.upcase, ENV.keys.sort].join(' ') %>";
    assert_eq!(
        render(&renderer, &[look])[0].as_deref(),
        Ok("nil nil nil A LANG LC_ALL")
    );
}

#[test]
fn each_template_has_its_own_context_and_methods() {
    if !common::is_installed() {
        return;
    }
    let results = render(
        &renderer(),
        &[
            "<% p('a') << 'y'; p('list') << 2; properties.a = 3; spec.b = 4; @c = 5; d = 6
            def e; 7; end
            def p(*) = 8 %><%= p('a') %>",
            "<%= [p('a'), p('list'), properties.a, spec.b, @c, defined?(d), defined?(e)].inspect %>",
        ],
    );
    assert_eq!(results[0].as_deref(), Ok("8"));
    assert_eq!(
        results[1].as_deref(),
        Ok(r#"["x", [1], "x", nil, nil, nil, nil]"#)
    );
}

#[test]
fn open_structs_have_the_values_from_before_the_evaluation() {
    if !common::is_installed() {
        return;
    }
    let text = "<% p('list') << 2; raw_properties['new'] = 1 %><%= properties.list %> <%= spec.properties.new.inspect %>";
    assert_eq!(render(&renderer(), &[text])[0].as_deref(), Ok("[1] nil"));
}

#[test]
fn a_killed_worker_is_restarted_once_per_request() {
    if !common::is_installed() {
        return;
    }
    let renderer = renderer();
    let always = "<% Process.kill(:KILL, Process.ppid) %>";
    let error = try_render(&renderer, "{}", &[always]).expect_err("there is no answer");
    assert!(matches!(error, RenderError::RubyEnded), "{error}");

    let marker = scratch("worker-killed-once");
    let once = format!(
        "<% if File.exist?({marker:?}); File.delete({marker:?})
        Process.kill(:KILL, Process.ppid); end %>second attempt"
    );
    assert_eq!(
        render(&renderer, &[&once])[0].as_deref(),
        Ok("second attempt")
    );
    assert_eq!(render(&renderer, &["<%= 1 %>"])[0].as_deref(), Ok("1"));
}

#[test]
fn output_has_a_limit_and_is_utf8() {
    if !common::is_installed() {
        return;
    }
    let renderer = renderer();
    let largest = "<%= 'x' * (16 * 1024 * 1024) %>";
    assert_eq!(
        between(&renderer, largest).map(|output| output.len()),
        Ok(16 * 1024 * 1024)
    );
    let larger = "<%= 'x' * (16 * 1024 * 1024) %>x";
    assert_eq!(
        between(&renderer, larger).expect_err("too large").message,
        "the output is larger than 16 MiB"
    );
    let binary = r#"<%= "\xff" %>"#;
    assert_eq!(
        between(&renderer, binary).expect_err("not text").message,
        "the output is not valid UTF-8"
    );
    assert_eq!(
        between(&renderer, r#"<%= "\0\u2028\"\\é" %>"#).as_deref(),
        Ok("\0\u{2028}\"\\é")
    );
}

#[test]
fn a_context_may_have_line_breaks() {
    if !common::is_installed() {
        return;
    }
    let context = "{\n  \"properties\": {\r\n \"a\": \"1\\n2\"\n}\n}\n";
    let results = try_render(&renderer(), context, &["<%= p('a') %>"]).expect("it has results");
    assert_eq!(results[0].as_deref(), Ok("1\n2"));
}

#[test]
fn many_threads_share_the_workers() {
    if !common::is_installed() {
        return;
    }
    let renderer = Renderer::new(Options {
        workers: 2,
        ..Options::default()
    });
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let renderer = &renderer;
            scope.spawn(move || {
                for request in 0..5 {
                    let context = format!(r#"{{"index": "{thread}-{request}"}}"#);
                    let results = try_render(renderer, &context, &["<%= index %>"]);
                    assert_eq!(
                        results.expect("it has results")[0],
                        Ok(format!("{thread}-{request}"))
                    );
                }
            });
        }
    });
}

#[test]
fn messages_have_no_addresses() {
    if !common::is_installed() {
        return;
    }
    let renderer = renderer();
    for (text, message) in [
        (
            "<%= Missing %>",
            "uninitialized constant Bosh::Template::EvaluationContext::Missing",
        ),
        (
            "<% class Own < RuntimeError; end; raise Own %>",
            "Bosh::Template::EvaluationContext::Own",
        ),
    ] {
        let error = between(&renderer, text).expect_err("it raises");
        assert_eq!(error.message, message);
    }
    let error = between(&renderer, "<%= missing %>").expect_err("it raises");
    assert!(!error.message.contains("0x"), "{error}");
}

/// The fast path against Ruby: a tag without output at the end makes Ruby render the same text.
#[test]
fn texts_without_tags_are_their_own_output() {
    if !common::is_installed() {
        return;
    }
    let renderer = renderer();
    for text in [
        "",
        "a\n",
        "% a\n%% b\n%",
        "a %> b %%> c -%>\n",
        " -%>\r\nb\r\n",
        "< % = %\n\n\n",
        "é\0\t\\",
    ] {
        let by_ruby = format!("{text}<%# -%>");
        let results = render(&renderer, &[text, &by_ruby]);
        assert_eq!(results[0].as_deref(), Ok(text));
        assert_eq!(results[1].as_deref(), Ok(text));
    }
}

#[test]
fn a_missing_ruby_is_reported_with_the_remedy() {
    let renderer = Renderer::new(Options {
        ruby: Some(PathBuf::from("/nonexistent/ruby")),
        ..Options::default()
    });
    let error = try_render(&renderer, "{}", &["<%= 1 %>"]).expect_err("there is no Ruby");
    assert_eq!(
        error.to_string(),
        "ERB templates need Ruby, but `/nonexistent/ruby` is missing: \
         install Ruby 3 (`apt-get install ruby`), or pass --ruby PATH"
    );
    assert_eq!(render(&renderer, &["no tags"])[0].as_deref(), Ok("no tags"));
}

#[test]
fn another_program_is_not_ruby() {
    let renderer = Renderer::new(Options {
        ruby: Some(PathBuf::from("/bin/ls")),
        ..Options::default()
    });
    let error = try_render(&renderer, "{}", &["<%= 1 %>"]).expect_err("ls is not Ruby");
    assert!(matches!(error, RenderError::RubyFailed { .. }), "{error}");
}
