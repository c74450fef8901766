/** Styles of player.ts, for page and embed. */
const playerCss = `
.moving { display: block }
.still { display: none }
@media (prefers-reduced-motion: reduce) { .moving { display: none } .still { display: block } }
.placeholder, .gate .closed { display: grid; place-items: center; position: relative; width: 100% }
.placeholder > *, .gate .closed > * { grid-area: 1 / 1 }
.spacer { max-width: 100%; height: auto; visibility: hidden }
.notice { display: flex; flex-direction: column; align-items: center; gap: .5rem; padding: 1rem; text-align: center; color: #aeb4bf; font-size: .875rem; line-height: 1.4 }
.notice a { color: inherit }
.notice strong { color: #fff; font-size: 1.0625rem; font-weight: 600 }
.button { display: inline-block; margin-top: .5rem; padding: .5rem 1.25rem; border-radius: 99px; background: #fff; color: #101216; font-weight: 600; font-size: .875rem }
.gate summary { display: block; list-style: none; cursor: pointer }
.gate summary::-webkit-details-marker { display: none }
.gate summary:hover .button { background: #dfe3ea }
.gate summary:focus-visible { outline: none }
.gate summary:focus-visible .button { outline: 3px solid #6ea0ff; outline-offset: 2px }
.gate .opened, .gate[open] .closed { display: none }
.gate[open] .opened { display: inline-block; position: absolute; z-index: 1; top: .75rem; right: .75rem; margin: 0; padding: .375rem .875rem; background: #000a; color: #fff; font-size: .8125rem }
.gate[open] summary:hover .opened { background: #000 }
.progress { position: relative; overflow: hidden; width: 12rem; max-width: 60vw; height: 4px; margin-top: .75rem; border-radius: 4px; background: #ffffff26 }
.progress::after { content: ""; position: absolute; inset: 0 60% 0 0; border-radius: inherit; background: #6ea0ff; animation: slide 1.4s ease-in-out infinite alternate }
@keyframes slide { to { transform: translateX(150%) } }
@media (prefers-reduced-motion: reduce) { .progress::after { animation: none; right: 40% } }
`

/** Centred card, full width on phones; light or dark as the system. */
export const clipPageCss = `
:root { color-scheme: light dark; --ground: #f4f5f7; --card: #fff; --line: #e3e6eb; --text: #15181e; --quiet: #5b6371; --fill: #eef0f4; --accent: #1d5fd6 }
@media (prefers-color-scheme: dark) { :root { --ground: #0d0f13; --card: #171a20; --line: #272c35; --text: #f0f2f5; --quiet: #9aa3b2; --fill: #232831; --accent: #86b1ff } }
* { box-sizing: border-box }
body { margin: 0; background: var(--ground); color: var(--text); font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; -webkit-text-size-adjust: 100% }
header, main { width: 100%; max-width: 992px; margin: 0 auto; padding: 0 1rem }
header { padding-block: 1.125rem; text-align: center }
header a { color: inherit; font-weight: 700; letter-spacing: -.01em; text-decoration: none }
main { padding-bottom: 3rem }
article { overflow: hidden; border: 1px solid var(--line); border-radius: 16px; background: var(--card); box-shadow: 0 1px 2px #0000000a, 0 12px 32px #0000000f }
.stage { position: relative; display: flex; justify-content: center; background: var(--fill) }
.stage video { max-width: 100%; height: auto }
.stage .gate { width: 100% }
.stage .gate video { margin: 0 auto }
.about { padding: 1.25rem 1.5rem 1.5rem }
.clip { width: fit-content; min-width: min(100%, 32rem); max-width: 100%; margin: 0 auto }
.clip .about { width: 0; min-width: 100% }
h1 { margin: 0; font-size: 1.375rem; line-height: 1.3; letter-spacing: -.015em; overflow-wrap: anywhere }
.facts { display: flex; flex-wrap: wrap; margin: .375rem 0 0 -1.125rem; clip-path: inset(0 0 0 1.125rem); color: var(--quiet); font-size: .875rem }
.facts > * { position: relative; padding-left: 1.125rem; overflow-wrap: anywhere }
.facts > *::before { content: "·"; position: absolute; left: .4375rem; color: var(--quiet); font-weight: 400 }
.facts .credit { color: var(--accent); font-weight: 600; text-decoration: none }
.facts .credit:hover { text-decoration: underline }
.tags { display: flex; flex-wrap: wrap; gap: .375rem; margin: 1rem 0 0; padding: 0; list-style: none }
.tags li { padding: .125rem .6875rem; border-radius: 99px; background: var(--fill); color: var(--quiet); font-size: .8125rem; overflow-wrap: anywhere }
.formats { display: flex; flex-wrap: wrap; gap: .5rem; margin-top: 1.25rem; padding-top: 1.25rem; border-top: 1px solid var(--line) }
.formats a, .copies button { padding: .4375rem 1rem; border: 1px solid var(--line); border-radius: 10px; color: var(--text); font-size: .875rem; font-weight: 600; text-decoration: none }
.formats { align-items: center }
.formats span { color: var(--quiet); font-size: .875rem }
.copies { display: flex; flex-wrap: wrap; gap: .5rem; margin-top: .5rem }
.copies button { background: none; font: inherit; font-size: .875rem; font-weight: 600; cursor: pointer }
.formats a:hover, .copies button:hover { background: var(--fill) }
[hidden] { display: none !important }
.unseen { position: absolute; overflow: hidden; width: 1px; height: 1px; margin: -1px; clip-path: inset(50%); white-space: nowrap }
.onward { display: inline-block; margin-top: .75rem; color: var(--accent); font-weight: 600 }
.report { margin: 1rem 0 0; font-size: .8125rem }
.report a { color: var(--quiet) }
.embed { margin-top: 1rem; font-size: .875rem }
.embed summary { width: fit-content; color: var(--quiet); cursor: pointer }
.embed textarea { display: block; width: 100%; margin-top: .625rem; padding: .75rem; border: 1px solid var(--line); border-radius: 10px; background: var(--fill); color: var(--text); font: .8125rem/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; resize: vertical }
a:focus-visible, button:focus-visible, summary:focus-visible, textarea:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 6px }
@media (max-width: 40rem) {
  header { padding-block: .875rem }
  main { padding: 0 0 2rem }
  article { border-width: 1px 0; border-radius: 0; box-shadow: none }
  .about { padding: 1rem 1rem 1.25rem }
  h1 { font-size: 1.1875rem }
  article.clip { width: auto }
  .formats a, .copies button { flex: 1; text-align: center }
  .formats span { flex-basis: 100% }
}
${playerCss}
.placeholder, .gate:not([open]) { background: #0a0b0d }
`

/** Pages of the service: the clip's page with a bar of links. */
export const sitePageCss = `${clipPageCss}
header, main { max-width: 672px }
.bar { display: flex; align-items: baseline; justify-content: space-between; gap: 1rem }
.bar nav { display: flex; gap: 1rem }
.bar nav a { color: var(--quiet); font-size: .875rem; font-weight: 600 }
.bar nav a:hover { text-decoration: underline }
.hint { margin: .25rem 0 0; color: var(--quiet); font-size: .875rem }
code { font: .875em/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; overflow-wrap: anywhere }
`

/** The clip fills the frame; the rest lies over it. */
export const embedPageCss = `
* { box-sizing: border-box }
html, body { height: 100%; margin: 0; overflow: hidden; background: #000; font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif }
${playerCss}
video { position: absolute; inset: 0; width: 100%; height: 100%; object-fit: contain }
.placeholder, .gate:not([open]) summary, .gate .closed { position: absolute; inset: 0 }
.spacer { display: none }
.home { position: absolute; z-index: 1; top: .5rem; left: .5rem; max-width: calc(100% - 6rem); overflow: hidden; padding: .25rem .75rem; border-radius: 99px; background: #000a; color: #fff; font-size: .8125rem; font-weight: 600; text-decoration: none; text-overflow: ellipsis; white-space: nowrap; opacity: 0; transition: opacity .15s }
.home.report { right: .5rem; left: auto; max-width: 5rem }
body:hover .home, .home:focus-visible { opacity: 1 }
.gate[open] .opened { top: 2.75rem }
.home:focus-visible { outline: 2px solid #6ea0ff }
@media (max-height: 11rem) { .notice { gap: .25rem; padding: .5rem } .notice > :not(strong, .button, .progress) { display: none } }
@media (hover: none), (max-width: 12rem) { .home:not(.report) { display: none } }
@media (hover: none) { .home.report { opacity: .7 } }
@media (max-width: 12rem) { .home.report { display: none } .gate[open] .opened { top: .75rem } }
`

/** Styles of `sitePageCss` and of a form. */
export const homePageCss = `${sitePageCss}
:root { --bad: #b3261e; --on-accent: #fff }
@media (prefers-color-scheme: dark) { :root { --bad: #ff9a92; --on-accent: #0d0f13 } }
h1:focus, .step:focus, .problem:focus { outline: none }
form { margin-top: 1.25rem }
.field { margin-top: 1.125rem }
.field > label:not(.check), legend { display: block; margin-bottom: .375rem; font-size: .875rem; font-weight: 600 }
.optional { color: var(--quiet); font-weight: 400 }
input:not([type=checkbox], [type=file], [type=range]), select, textarea { display: block; width: 100%; min-height: 2.75rem; padding: .5625rem .8125rem; border: 1px solid #868d9a; border-radius: 10px; background: var(--card); color: var(--text); font: inherit }
input::placeholder { color: var(--quiet); opacity: 1 }
input:focus-visible, button:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px }
input[aria-invalid=true] { border-color: var(--bad); box-shadow: 0 0 0 1px var(--bad) }
.check { display: flex; align-items: center; gap: .5rem; min-height: 2.25rem; margin-top: .25rem; font-size: .875rem }
.check:has(:disabled) { color: var(--quiet) }
.check input { width: 1.125rem; height: 1.125rem; margin: 0; accent-color: var(--accent) }
.drop { position: relative; display: grid; place-items: center; min-height: 9rem; padding: 1rem; border: 2px dashed #868d9a; border-radius: 14px; background: var(--ground); text-align: center }
.drop.over, .drop:hover { border-color: var(--accent) }
.drop.over { background: var(--fill) }
.drop.bad { border-color: var(--bad) }
.drop:has(#file:focus-visible) { outline: 2px solid var(--accent); outline-offset: 2px }
.drop input { position: absolute; inset: 0; width: 100%; height: 100%; opacity: 0; cursor: pointer }
.drop label { display: flex; flex-direction: column; gap: .125rem; max-width: 100%; pointer-events: none }
.drop label strong { overflow-wrap: anywhere; color: var(--accent) }
.drop label span { color: var(--quiet); font-size: .875rem }
.drop .quiet { position: relative; z-index: 1; margin-top: .5rem }
.more { margin-top: 1.25rem; padding-top: 1rem; border-top: 1px solid var(--line) }
.more summary { width: fit-content; padding: .25rem 0; color: var(--quiet); font-size: .875rem; font-weight: 600; cursor: pointer }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: 0 1rem }
.pair .quiet { width: 100%; min-height: 2.25rem; margin-top: .5rem; padding: .25rem .75rem }
.pair.caption { grid-template-columns: 1fr auto }
#trim-preview { display: grid; grid-template-columns: auto 1fr; align-items: center; gap: .5rem .75rem; margin-top: .75rem; font-size: .875rem; font-weight: 600 }
#trim-preview[hidden] { display: none }
#trim-preview video { --shape: 1; grid-column: 1 / -1; justify-self: center; width: min(100%, 50vh * var(--shape)); aspect-ratio: var(--shape); object-fit: cover; border-radius: 10px; background: #000 }
#chosen { grid-column: 2; overflow: hidden; height: .5rem; margin: 0 .625rem; border-radius: 99px; background: var(--fill) }
#chosen div { height: 100%; background: var(--accent) }
#trim-preview input { width: 100%; height: 1.5rem; margin: 0; appearance: none; background: linear-gradient(var(--line) 0 0) center / 100% .25rem no-repeat; cursor: pointer }
#trim-preview input::-webkit-slider-thumb { width: 1.25rem; height: 1.25rem; border: 0; border-radius: 50%; appearance: none; background: var(--accent) }
#trim-preview input::-moz-range-thumb { width: 1.25rem; height: 1.25rem; border: 0; border-radius: 50%; background: var(--accent) }
select:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px }
fieldset { min-width: 0; margin: 1rem 0 0; padding: 0; border: 0 }
legend { padding: 0; font-size: .9375rem }
fieldset .field { margin-top: .75rem }
.error { margin: .5rem 0 0; color: var(--bad); font-size: .875rem; overflow-wrap: anywhere }
.error::before { content: "! "; font-weight: 700 }
.problem { margin-top: 1.25rem; padding: .75rem 1rem; border: 1px solid var(--bad); border-radius: 10px }
button { min-height: 2.75rem; padding: .5rem 1.125rem; border: 0; border-radius: 10px; font: inherit; font-weight: 600; cursor: pointer }
.primary { width: 100%; margin-top: 1.5rem; background: var(--accent); color: var(--on-accent) }
.primary:hover { filter: brightness(1.08) }
.quiet { border: 1px solid #868d9a; background: var(--card); color: var(--text); font-size: .875rem }
.quiet:hover { background: var(--fill) }
#work { margin-top: 1.5rem }
.step { margin: 0 0 .75rem; font-weight: 600; overflow-wrap: anywhere }
progress { display: block; width: 100%; height: .625rem; border: 0; border-radius: 99px; overflow: hidden; appearance: none; background: var(--fill); color: var(--accent) }
progress::-webkit-progress-bar { background: var(--fill) }
progress::-webkit-progress-value { border-radius: 99px; background: var(--accent); transition: width .2s }
progress::-moz-progress-bar { border-radius: 99px; background: var(--accent) }
progress:indeterminate { background: linear-gradient(90deg, var(--fill) 25%, var(--accent) 50%, var(--fill) 75%) 100% 0 / 300% 100%; animation: wait 1.6s linear infinite }
progress:indeterminate::-webkit-progress-bar { background: transparent }
@keyframes wait { to { background-position: -50% 0 } }
@media (prefers-reduced-motion: reduce) { progress:indeterminate { animation: none; background-position: 50% 0 } }
.row { display: flex; align-items: center; justify-content: space-between; gap: 1rem; margin: .75rem 0 0 }
.row .hint { margin: 0 }
#done { margin-top: 0 }
#preview { max-height: 60vh; object-fit: contain }
.links { display: grid; gap: .5rem; margin: 1.25rem 0 0; padding: 0; list-style: none }
.links li { display: grid; grid-template-columns: 3.5rem minmax(0, 1fr) auto; align-items: center; gap: .75rem; font-size: .875rem }
.links span { color: var(--quiet); font-weight: 600 }
.links a { overflow: hidden; padding: .375rem 0; color: var(--accent); text-overflow: ellipsis; white-space: nowrap }
.links button { min-height: 2.25rem; padding: .25rem .75rem }
#embed { min-height: 6.5rem; margin-bottom: .5rem; background: var(--fill); font: .8125rem/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; resize: vertical }
pre { overflow-x: auto; padding: .75rem 1rem; border-radius: 10px; background: var(--fill); font-size: .8125rem }
`
