import { sitePageCss } from './styles.ts'

/** Styles of `sitePageCss` and of a form. */
export const homePageCss = `${sitePageCss}
:root { --bad: #b3261e; --on-accent: #fff }
@media (prefers-color-scheme: dark) { :root { --bad: #ff9a92; --on-accent: #0d0f13 } }
h1:focus, .step:focus, .problem:focus { outline: none }
form { margin-top: 1.25rem }
.field { margin-top: 1.125rem }
.field > label:not(.check), legend { display: block; margin-bottom: .375rem; font-size: .875rem; font-weight: 600 }
.optional { color: var(--quiet); font-weight: 400 }
input:not([type=checkbox], [type=file]), textarea { display: block; width: 100%; min-height: 2.75rem; padding: .5625rem .8125rem; border: 1px solid #868d9a; border-radius: 10px; background: var(--card); color: var(--text); font: inherit }
input::placeholder { color: var(--quiet); opacity: 1 }
input:focus-visible, button:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px }
input[aria-invalid=true] { border-color: var(--bad); box-shadow: 0 0 0 1px var(--bad) }
.check { display: flex; align-items: center; gap: .5rem; min-height: 2.25rem; margin-top: .25rem; font-size: .875rem }
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
#more { margin-top: 1.25rem; padding-top: 1rem; border-top: 1px solid var(--line) }
#more summary { width: fit-content; padding: .25rem 0; color: var(--quiet); font-size: .875rem; font-weight: 600; cursor: pointer }
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
