import { describe, expect, test } from 'vitest'
import { compileTemplate, LINK_SCHEMES, MAX_OUTPUT, renderTemplate } from './template.ts'
import type { TemplateVariables } from './values.ts'

const VARIABLES = {
  Email: 'ada@example.com',
  ConfirmationURL: 'https://auth.example/verify?token=abc&type=signup&redirect_to=https%3A%2F%2Fsite.example',
  Token: '012345',
  SiteURL: 'https://site.example',
  Number: 3,
  Zero: 0,
  Empty: '',
  None: null,
  Yes: true,
  List: ['a', 'b', 'c'],
  Nothing: [],
  Data: { name: 'Ada', roles: ['admin', 'dev'], nested: { deep: { er: 'x' } }, empty: {} },
}

const html = (source: string, variables: TemplateVariables = VARIABLES, schemes = LINK_SCHEMES) =>
  renderTemplate(compileTemplate(source, 'html'), variables, schemes)
const text = (source: string, variables: TemplateVariables = VARIABLES) =>
  renderTemplate(compileTemplate(source, 'text'), variables)

describe('syntax', () => {
  test.for([
    ['a variable', 'Hello {{ .Email }}!', 'Hello ada@example.com!'],
    ['without blanks', '{{.Token}}', '012345'],
    ['nested fields', '{{ .Data.name }} {{ .Data.nested.deep.er }}', 'Ada x'],
    ['an unknown variable is empty', '[{{ .Unknown }}|{{ .Data.no.such.thing }}|{{ .Email.length }}]', '[||]'],
    ['null is empty', '[{{ .None }}]', '[]'],
    ["nothing of JavaScript's own is reachable", '[{{ .constructor }}{{ .Data.__proto__ }}{{ .List.length }}]', '[]'],
    ['trimming', 'a  \n {{- .Number -}} \n b', 'a3b'],
    ['trimming one side', 'a {{- .Number }} b', 'a3 b'],
    ['a negative number is no trimming', '{{-3}}', '-3'],
    ['comments', 'a{{/* {{ .Email }} "*/}}b {{- /* c */ -}} d', 'abd'],
    ['if', '{{ if .Yes }}yes{{ end }}{{ if .Zero }}no{{ end }}', 'yes'],
    ['else', '{{ if .Empty }}a{{ else }}b{{ end }}', 'b'],
    ['else if', '{{ if .Zero }}a{{ else if eq .Number 3 }}b{{ else }}c{{ end }}', 'b'],
    ['else if to the end', '{{ if .Zero }}a{{ else if .None }}b{{ else if .Empty }}c{{ else }}d{{ end }}', 'd'],
    [
      'with',
      '{{ with .Data }}{{ .name }} {{ $.Token }}{{ end }}{{ with .None }}x{{ else }}none{{ end }}',
      'Ada 012345none',
    ],
    ['range over a list', '{{ range .List }}<{{ . }}>{{ end }}', '<a><b><c>'],
    ['range with index', '{{ range $i, $x := .List }}{{ $i }}{{ $x }}{{ end }}', '0a1b2c'],
    ['range with one name', '{{ range $x := .Data.roles }}{{ $x }} {{ end }}', 'admin dev '],
    ['range over an object, by key', '{{ range $k, $v := .Data }}{{ $k }} {{ end }}', 'empty name nested roles '],
    ['range over nothing', '{{ range .Nothing }}a{{ else }}none{{ end }}{{ range .Unknown }}b{{ end }}', 'none'],
    ['variables', '{{ $x := .Email }}{{ $x }}{{ $x = "b" }}{{ $x }}', 'ada@example.comb'],
    ['a variable ends with its block', '{{ $x := 1 }}{{ if .Yes }}{{ $x := 2 }}{{ $x }}{{ end }}{{ $x }}', '21'],
    ['an outer variable can be changed', '{{ $x := 1 }}{{ range .List }}{{ $x = . }}{{ end }}{{ $x }}', 'c'],
    ['a variable of if', '{{ if $n := .Data.name }}{{ $n }}{{ end }}', 'Ada'],
    ['fields of variables', '{{ $d := .Data }}{{ $d.name }} {{ $d.nested.deep.er }} {{ $.Data.name }}', 'Ada x Ada'],
    ['literals', '{{ "a\\n\\"b\\"" }}{{ `c\\n` }}{{ 1.5 }}{{ true }}{{ nil }}', 'a\n"b"c\\n1.5true'],
    ['pipelines', '{{ .Email | printf "%s-%s" "x" | print }}', 'x-ada@example.com'],
    ['parentheses', '{{ if and .Yes (not .Zero) (eq (len .List) 3) }}ok{{ end }}', 'ok'],
    ['a field of parentheses', '{{ (index .Data "nested").deep.er }}', 'x'],
    ['a list and a map as Go prints them', '{{ .List }} {{ .Data.nested }}', '[a b c] map[deep:map[er:x]]'],
    ['line ends inside an action', '{{ if\n .Yes\n }}a{{ end }}', 'a'],
    ['braces that are none', '{ a } }} {', '{ a } }} {'],
  ] as const)('%s', ([, source, expected]) => {
    expect(text(source)).toBe(expected)
  })

  test.for([
    ['eq of several', '{{ eq .Number 1 2 3 }}', 'true'],
    ['eq of different kinds', '{{ eq .Number "3" }}', 'false'],
    ['ne lt le gt ge', '{{ ne 1 2 }}{{ lt 1 2 }}{{ le 2 2 }}{{ gt 2 1 }}{{ ge 1 2 }}', 'truetruetruetruefalse'],
    ['order of texts', '{{ lt "a" "b" }}', 'true'],
    ['order of what has none', '{{ lt .List 1 }}{{ ge .None 1 }}{{ gt "a" 1 }}', 'falsefalsefalse'],
    ['and', '{{ and 1 0 2 }} {{ and 1 2 }} [{{ and .None 1 }}]', '0 2 []'],
    ['or', '{{ or 0 "" "x" }} {{ or 0 "" }}|', 'x |'],
    ['len', '{{ len .List }}{{ len "abc" }}{{ len .Data }}{{ len .None }}', '3340'],
    ['index', '{{ index .List 1 }}{{ index .Data "name" }}{{ index .Data "roles" 0 }}', 'bAdaadmin'],
    ['index out of range is empty', '[{{ index .List 7 }}{{ index .List -1 }}{{ index .None "a" }}]', '[]'],
    ['printf', '{{ printf "%s %d %v %q %t %.2f 100%%" "a" 2 .List "c" true 1.5 }}', 'a 2 [a b c] "c" true 1.50 100%'],
    ['printf with too few', '[{{ printf "%s %s" "a" }}]', '[a ]'],
    ['print', '{{ print 1 "a" .Number }}', '1a3'],
    ['slice', '{{ slice "482913" 0 3 }} {{ slice "482913" 3 }}{{ slice .List 1 }}', '482 913[b c]'],
    ['slice beyond the end', '{{ slice "ab" 1 9 }}{{ slice "cd" -1 }}{{ slice .None 0 1 }}{{ slice .Data }}', 'bcd'],
    ['urlquery', '{{ urlquery "a b&c/ü" }}', 'a%20b%26c%2F%C3%BC'],
    ['html in a text', '{{ html "<b>" }}', '&lt;b&gt;'],
    ['js', '{{ js "a\'<" }}', 'a\\u0027\\u003c'],
  ] as const)('function %s', ([, source, expected]) => {
    expect(text(source)).toBe(expected)
  })

  test.for([
    ['a', '\n\n{{ .Email', 'line 3: expected "}}"'],
    ['b', 'a\n{{ "abc }}', 'line 2: expected the closing quote of a text'],
    ['c', '{{ if .Yes }}a', 'line 1: expected {{ end }} for this block'],
    ['d', 'a\nb{{ end }}', 'line 2: expected {{ if }}, {{ range }} or {{ with }} before {{ end }}'],
    ['e', '{{ else }}', 'line 1: expected {{ if }}, {{ range }} or {{ with }} before {{ else }}'],
    ['f', '{{ template "x" }}', 'line 1: expected a known function, found "template"'],
    ['g', '{{ .A.B | }}', 'line 1: expected a function after "|"'],
    ['h', '{{ .Email "x" }}', 'line 1: expected a function before its arguments'],
    ['i', '{{ $x }}', 'line 1: expected $x to be set before'],
    ['j', '{{ (.A }}', 'line 1: expected ")"'],
    ['k', '{{ }}', 'line 1: expected a variable, a text, a number or a function'],
    ['l', '{{ .A {{ .B }}', 'line 1: expected a variable, a text, a number or a function, found "{"'],
    ['m', '{{/* never ends', 'line 1: expected "*/}}"'],
    ['n', '{{ if .A }}{{ else }}{{ else }}{{ end }}', 'line 1: expected {{ end }} after {{ else }}'],
    ['o', '{{ not }}', 'line 1: expected at least 1 argument(s) for not'],
    ['p', '{{ ne 1 2 3 }}', 'line 1: expected at most 2 argument(s) for ne'],
    ['q', `{{ ${'('.repeat(500)} }}`, 'line 1: expected at most 50 levels of parentheses'],
    ['r', '{{ if 1 }}'.repeat(500), 'line 1: expected at most 50 blocks within each other'],
    ['s', `{{ if 1 }}${'{{ else if 1 }}'.repeat(500)}{{ end }}`, 'expected at most 50 blocks within each other'],
    ['t', '{{ range $x := .A }}{{ end }}{{ $x }}', 'line 1: expected $x to be set before'],
  ] as const)('an error names the line and what was expected: %s', ([, source, expected]) => {
    expect(() => compileTemplate(source, 'html')).toThrow(expected)
  })
})

describe('escaping in HTML', () => {
  const evil = `"><script>alert('1')</script>&`
  const cases: [string, string, unknown, string][] = [
    ['text', '<p>{{ .X }}</p>', evil, '<p>&quot;&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;</p>'],
    ['a quoted attribute', '<p title="{{ .X }}">', `" onclick="x`, '<p title="&quot; onclick=&quot;x">'],
    ['a single-quoted attribute', "<p title='{{ .X }}'>", `' onclick='x`, "<p title='&#39; onclick=&#39;x'>"],
    [
      'a comment that ends as only browsers end it',
      '<!-- a --!><a href="{{ .X }}">',
      'javascript:x',
      '<!-- a --!><a href="#ZgotmplZ">',
    ],
    [
      'a link',
      '<a href="{{ .X }}">',
      VARIABLES.ConfirmationURL,
      `<a href="${VARIABLES.ConfirmationURL.replaceAll('&', '&amp;')}">`,
    ],
    ['a link with a script', '<a href="{{ .X }}">', 'javascript:alert(1)', '<a href="#ZgotmplZ">'],
    ['… in capitals after a blank', '<a href="{{ .X }}">', ' JavaScript:alert(1)', '<a href="#ZgotmplZ">'],
    ['… with a line end inside', '<a href="{{ .X }}">', 'java\nscript:alert(1)', '<a href="#ZgotmplZ">'],
    ['… after a control character', '<a href="{{ .X }}">', '\u0001javascript:alert(1)', '<a href="#ZgotmplZ">'],
    ['… as data', '<img src="{{ .X }}">', 'data:text/html,<script>', '<img src="#ZgotmplZ">'],
    ['… split over text and value', '<a href="java{{ .X }}">', 'script:alert(1)', '<a href="java#ZgotmplZ">'],
    [
      '… in two values',
      '<a href="{{ .X.a }}{{ .X.b }}">',
      { a: 'java', b: 'script:alert(1)' },
      '<a href="java#ZgotmplZ">',
    ],
    ['… of another program', '<a href="{{ .X }}">', 'ms-msdt:/id', '<a href="#ZgotmplZ">'],
    [
      '… in Outlook only',
      '<!--[if mso]><v:rect href="{{ .X }}"><![endif]-->',
      'javascript:x',
      '<!--[if mso]><v:rect href="#ZgotmplZ"><![endif]-->',
    ],
    [
      '… hidden from Outlook',
      '<!--[if !mso]><!--><a href="{{ .X }}"><!--<![endif]-->',
      'javascript:x',
      '<!--[if !mso]><!--><a href="#ZgotmplZ"><!--<![endif]-->',
    ],
    ['… after an empty comment', '<!--><a href="{{ .X }}">', 'javascript:x', '<!--><a href="#ZgotmplZ">'],
    ['mailto', '<a href="{{ .X }}">', 'mailto:a@b.c', '<a href="mailto:a@b.c">'],
    ['a relative link', '<a href="{{ .X }}">', '/a:b?c', '<a href="/a:b?c">'],
    ['a quote in a link', '<a href="{{ .X }}">', 'https://a/"b\'<c> d', '<a href="https://a/%22b%27%3Cc%3E%20d">'],
    ['a percent sign that is none', '<a href="{{ .X }}">', 'https://a/%zz%20', '<a href="https://a/%25zz%20">'],
    [
      'a query',
      '<a href="https://a/x?u={{ .X }}">',
      'a b&c=d"/?#+',
      '<a href="https://a/x?u=a%20b%26c%3Dd%22%2F%3F%23%2B">',
    ],
    [
      'a query after a variable',
      '<a href="{{ .X.site }}/x?u={{ .X.u }}">',
      { site: 'https://a', u: 'a&b@c' },
      '<a href="https://a/x?u=a%26b%40c">',
    ],
    [
      'a query begun by a variable',
      '<a href="{{ .X.url }}&l={{ .X.l }}">',
      { url: 'https://a?b=c', l: 'd&e' },
      '<a href="https://a?b=c&l=d%26e">',
    ],
    ['urlquery in a query is not doubled', '<a href="/?u={{ .X | urlquery }}">', 'a&b', '<a href="/?u=a%26b">'],
    ['html is not doubled', '<p>{{ .X | html }}</p>', '<', '<p>&lt;</p>'],
    [
      'background and srcset',
      '<td background="{{ .X }}"><img srcset="{{ .X }}">',
      'javascript:x',
      '<td background="#ZgotmplZ"><img srcset="#ZgotmplZ">',
    ],
    ['a style', '<p style="color: {{ .X }}">', '#ff0000', '<p style="color: #ff0000">'],
    ['a hostile style', '<p style="color: {{ .X }}">', 'red;background:url(//x)', '<p style="color: ZgotmplZ">'],
    ['a comment', '<!-- {{ .X }} -->', '--><b>', '<!-- --&gt;&lt;b&gt; -->'],
    ['less-than in text', '<p>1 < 2 {{ .X }}</p>', '<', '<p>1 < 2 &lt;</p>'],
  ]
  test.for(cases)('%s', ([, source, value, expected]) => {
    expect(html(source, { X: value })).toBe(expected)
  })

  const inTag = 'in a tag, a value may only stand in an attribute with quotes'
  test.for([
    ['a script', '<script>let a = "{{ .X }}"</script>', 'no value may stand in <script>'],
    ['JSON-LD', '<script type="application/ld+json">{"u": "{{ .X }}"}</script>', 'no value may stand in <script>'],
    ['a style sheet', '<STYLE>p { color: {{ .X }} }</STYLE>', 'no value may stand in <style>'],
    ['an event handler', '<p onclick="f({{ .X }})">', 'no value may stand in the attribute "onclick"'],
    ['a refresh', '<meta content="{{ .X }}">', 'no value may stand in the attribute "content"'],
    ['a document in a frame', '<iframe srcdoc="{{ .X }}">', 'no value may stand in the attribute "srcdoc"'],
    ['an attribute without quotes', '<p title={{ .X }}>', inTag],
    ['the middle of one', '<a href=https://a/{{ .X }}>', inTag],
    ['a tag name', '<{{ .X }}>', inTag],
    ['a closing tag', '<p></{{ .X }}>', inTag],
    ['an attribute name', '<p {{ .X }}="a">', inTag],
    ['a tag in two parts', '<scr{{ if .X }}ipt{{ end }}>{{ .X }}', 'no value may stand in <script>'],
    ['a branch without a sample', '{{ if .None }}\n<p title={{ .X }}>{{ end }}', `line 2: ${inTag}`],
    ['an else', '<p {{ if .X }}title="{{ else }}{{ .X }}{{ end }}">', inTag],
  ] as const)('a template with a value in %s is refused', ([, source, expected]) => {
    expect(() => compileTemplate(source, 'html')).toThrow(expected)
  })

  test('a branch that moves the place is refused when it is taken', () => {
    const source = '<p {{ if .X }}title="{{ end }}{{ .Email }}">'
    expect(html(source, { X: 1, Email: '"' })).toBe('<p title="&quot;">')
    expect(() => html(source, { X: 0, Email: '"' })).toThrow(inTag)
  })

  test('a tag that a loop grows without end is refused', () => {
    const source = '<p {{ range .X }}a{{ end }}>'
    expect(() => html(source, { X: Array.from({ length: 5_000 }) })).toThrow('longer than 4096 characters')
  })

  test('lone surrogates and NUL do not break anything', () => {
    const X = '\ud800\u0000'
    expect(() => html('<a href="/{{ .X }}?{{ .X }}" style="{{ .X }}">{{ .X }}', { X })).not.toThrow()
  })

  test("the site's own scheme may be permitted", () => {
    const schemes = new Set([...LINK_SCHEMES, 'myapp'])
    expect(html('<a href="{{ .X }}">', { X: 'myapp://home' }, schemes)).toBe('<a href="myapp://home">')
  })
})

describe('bounds', () => {
  const many = Array.from({ length: 5_000 }, () => 'x'.repeat(1_000))
  test('the result', () => {
    expect(() => html('{{ range .X }}{{ . }}{{ end }}', { X: many })).toThrow(`longer than ${MAX_OUTPUT} characters`)
  })
  test('loops in loops', () => {
    const source = '{{ range .X }}{{ range $.X }}{{ range $.X }}{{ end }}{{ end }}{{ end }}'
    expect(() => html(source, { X: many })).toThrow('steps')
  })
  test('a text that doubles in a loop', () => {
    const source = '{{ $a := "x" }}{{ range .X }}{{ $a = print $a $a }}{{ end }}'
    expect(() => html(source, { X: many })).toThrow(`longer than ${MAX_OUTPUT} characters`)
  })
  test('a megabyte of opening braces is refused, not chewed on', () => {
    for (const source of [
      '{{'.repeat(500_000),
      '<'.repeat(1_000_000),
      '{{ "'.repeat(250_000),
      '{{/*'.repeat(250_000),
    ]) {
      const run = () => html(source)
      if (source.startsWith('{')) expect(run).toThrow('line 1')
      else expect(run()).toHaveLength(1_000_000)
    }
  })
})
