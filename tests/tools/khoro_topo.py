# SPDX-License-Identifier: Apache-2.0
"""`khoro topo`: what it prints of machines and how it exits.

usage: khoro_topo.py KHORO
"""
import collections
import io
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest
import xml.etree.ElementTree as xml

KHORO = sys.argv.pop(1)
GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden" / "topologies"


def gpu(number, links, bus="0{}:00.0"):
    bus_id = "0000:" + bus.format(number + 1)
    return (f'<pci busid="{bus_id}" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">'
            f'<gpu dev="{number}" sm="80" rank="{number}" gdr="1">{links}</gpu></pci>')


def machine(links=('<nvlink target="fffffff:ff:ff.0" count="12" tclass="0x068000"/>',) * 4):
    """Two GPUs on each of two CPUs, and a 100 Gb/s port beside the first two."""
    cpus = ""
    for numa in range(2):
        inside = "".join(gpu(i, links[i]) for i in (2 * numa, 2 * numa + 1))
        if numa == 0:
            inside += ('<pci busid="0000:0a:00.0" class="0x020700" link_speed="16.0 GT/s PCIe" '
                       'link_width="16"><nic><net name="mlx5_0" dev="0" speed="100000" port="1" '
                       'guid="0x1" maxconn="1" gdr="1"/></nic></pci>')
        cpus += (f'<cpu numaid="{numa}" affinity="ff" arch="x86_64" vendor="AuthenticAMD" '
                 f'familyid="175" modelid="1">{inside}</cpu>')
    return f'<system version="1">{cpus}</system>'


class Topo(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def file(self, text, name="machine.xml"):
        path = pathlib.Path(self.folder.name) / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    def topo(self, *arguments, status=0):
        done = subprocess.run([KHORO, "topo", *map(str, arguments)], text=True, capture_output=True,
                              timeout=100)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stderr if status == 2 else done.stdout

    def test_this_machine_is_shown_whatever_it_has(self):
        text = self.topo("show")
        self.assertRegex(text, r"machine 0: \d+ cpus?")
        self.assertIn("cpu0", text)
        self.topo("matrix")
        self.topo("plan")

    def test_a_machine_is_a_tree_with_rates_and_what_was_repaired(self):
        odd = machine().replace('link_speed="16.0 GT/s PCIe"', 'link_speed=""', 1)
        text = self.topo("show", "--file", self.file(odd))
        self.assertIn("machine 0: 2 cpus, 4 gpus, 1 nic, 1 port; GB/s each way", text)
        self.assertRegex(text, r"\n  gpu3 0000:04:00.0 sm80  24  nvlink fabric0 240\n")
        self.assertRegex(text, r"\n  gpu0 .*\n +! PCIe speed \"\" x16: taken for 16.0 GT/s PCIe x16\n")
        found = json.loads(self.topo("show", "--format", "json", "--file", self.file(odd)))
        self.assertEqual(found["version"], 1)
        self.assertEqual(sum(site["kind"] == "gpu" for site in found["sites"]), 4)
        self.assertEqual(len(found["diagnostics"]), 1)

    def test_the_matrix_has_the_words_of_nvidia_smi(self):
        lines = ['<nvlink target="0000:02:00.0" count="4" tclass="0x030200"/>',
                 '<nvlink target="0000:01:00.0" count="4" tclass="0x030200"/>', "", ""]
        file = self.file(machine(lines))
        rows = [line.split() for line in self.topo("matrix", "--file", file).splitlines()]
        self.assertEqual(rows[1], ["gpu0", "X", "NV4", "SYS", "SYS", "PHB", "cpu0"])
        rates = [line.split() for line in self.topo("matrix", "--bw", "--file", file).splitlines()]
        self.assertEqual(rates[1], ["gpu0", "X", "80", "16", "16", "24", "cpu0"])
        found = json.loads(self.topo("matrix", "--format", "json", "--file", file))
        self.assertEqual(len(found["paths"]), 5 * 4)

    def test_a_plan_stands_beside_its_bound(self):
        file = self.file(machine())
        text = self.topo("plan", "--file", file)
        self.assertIn("bound    240 GB/s", text)
        self.assertIn("         240 GB/s of rings, or of a broadcast from the worst root\n", text)
        self.assertRegex(text, r"found    240 GB/s, 1.00 of it, by switches\n")
        found = json.loads(self.topo("plan", "--file", file, "--gpus", "0,3", "--format", "json"))
        self.assertEqual(found["whole"]["gpus"], ["gpu0", "gpu3"])
        self.assertEqual(found["whole"]["ratio"], 1)

    def test_what_is_found_is_proved_and_played(self):
        file = self.file(machine())
        found = json.loads(self.topo("plan", "--file", file, "--simulate", "64M", "--format", "json"))
        self.assertEqual(found["simulated"]["bytes"], 64 << 20)
        bus = found["simulated"]["bus_bytes_per_second"]
        self.assertTrue(.9 * 240e9 < bus <= 240e9, bus)
        plan = [KHORO, "plan", "verify", "allreduce", "channels", "--ranks"]
        done = subprocess.run([*plan, "4", "--topology", file], text=True, capture_output=True)
        self.assertIn("0 failed", done.stdout, done.stderr)
        done = subprocess.run([*plan, "5", "--topology", file], text=True, capture_output=True)
        self.assertIn("4 GPUs, but --ranks 5", done.stderr)

    def test_machines_are_joined_by_their_ports(self):
        found = json.loads(self.topo("plan", "--file", self.file(machine()), "--nodes", "2",
                                     "--format", "json"))
        self.assertEqual(len(found["whole"]["gpus"]), 8)
        crossing = found["whole"]["channels"][0]["crossings"][0]
        self.assertEqual({crossing["out"], crossing["in"]}, {"port0", "port1"})
        self.assertIn(" mlx5_0 > mlx5_0 ", self.topo("plan", "--file", self.file(machine()), "--nodes", "2"))
        self.assertAlmostEqual(found["whole"]["ring_bound_bytes_per_second"], 12.5e9, delta=1e6)

    def test_a_broken_gpu_is_named_and_the_others_keep_their_rate(self):
        links = ['<nvlink target="fffffff:ff:ff.0" count="12" tclass="0x068000"/>'] * 3 + [""]
        text = self.topo("plan", "--file", self.file(machine(links)))
        self.assertIn("gpu 3 at 0000:04:00.0: warning: 0.0 GB/s of direct links", text)
        self.assertRegex(text, r"island\nGPUs     gpu0 gpu1 gpu2, over NVLink or xGMI\nbound    240")

    def test_paths_are_explained_hop_by_hop(self):
        file = self.file(machine())
        text = self.topo("explain", "gpu0", "GPU3", "--file", file)
        self.assertIn("best path: NVL, 240 GB/s", text)
        self.assertIn("that one: SYS, 16 GB/s", text)
        self.assertRegex(text, r"cpu0 +cpu1 +socket +16 +the slowest")
        self.assertIn('no site "gpu9"; there are: cpu0', self.topo("explain", "gpu9", "gpu0", "--file",
                                                                   file, status=2))

    def access(self, text, one, other):
        """The line of `explain` on whether two devices of a machine reach each other's memory."""
        lines = [line for line in self.topo("explain", one, other, "--file", self.file(text)).splitlines()
                 if line.startswith(("peer access: ", "GPUDirect RDMA: "))]
        self.assertLessEqual(len(lines), 1)
        return lines[0] if lines else ""

    def test_it_is_said_why_gpus_do_not_reach_each_others_memory(self):
        host = ", and NCCL goes up to PXB; data goes through memory of the host"
        pair = ['<nvlink target="0000:02:00.0" count="4" tclass="0x030200"/>',
                '<nvlink target="0000:01:00.0" count="4" tclass="0x030200"/>', "", ""]
        for text, one, other, said in (
                (machine(), "gpu0", "gpu3", "yes, over NVLink through fabric0"),
                (machine(pair), "gpu0", "gpu1", "yes, over NVLink"),
                (machine(pair), "gpu2", "gpu3",
                 f"not used: the path crosses the root complex of cpu1 (PHB){host}"),
                (machine(pair), "GPU0", "GPU2", f"not used: the path leads from cpu0 to cpu1 (SYS){host}"),
                (machine(pair).replace("sm=", "gcn="), "gpu0", "gpu2",
                 "yes: the path leads from cpu0 to cpu1 (SYS), and RCCL goes up to SYS")):
            self.assertEqual(self.access(text, one, other), "peer access: " + said)
        self.assertEqual(self.access(machine(), "gpu0", "cpu0"), "")
        broken = (GOLDEN / "synth-two-trays-broken-gpu.xml").read_text(encoding="utf-8")
        for other, said in (("gpu0", "yes, over C2C through cpu0"),
                            ("gpu2", f"not used: the path leads from cpu0 to cpu1 (SYS){host}")):
            self.assertEqual(self.access(broken, "gpu1", other), "peer access: " + said)
        self.assertEqual(self.access(machine(), "nic0", "port0"), "")

    def test_gpus_pass_data_on_and_share_a_switch(self):
        line = ['<nvlink target="0000:02:00.0" count="1" tclass="0x030200"/>',
                '<nvlink target="0000:01:00.0" count="1" tclass="0x030200"/>'
                '<nvlink target="0000:03:00.0" count="1" tclass="0x030200"/>',
                '<nvlink target="0000:02:00.0" count="1" tclass="0x030200"/>', ""]
        self.assertEqual(self.access(machine(line), "gpu0", "gpu2"), "peer access: yes, over NVLink through gpu1")
        switch = ("topology\ncpu c machine 0 numaid=0 vendor=GenuineIntel\nbridge b machine 0 busid=0000:01:00.0\n"
                  "link pci b -- c\n" + "".join(
                      f"gpu g{i} machine 0 dev={i} busid=0000:0{i + 2}:00.0\nlink pci g{i} -- {above}\n"
                      for i, above in enumerate("bbc")))
        self.assertEqual(self.access(switch, "gpu0", "gpu1"), "peer access: yes, over PCIe below one CPU (PIX)")
        self.assertIn("not used: the path crosses the root complex of cpu0", self.access(switch, "gpu0", "gpu2"))
        self.assertIn("of AMD", self.access(switch.replace("GenuineIntel", "AuthenticAMD")
                                            .replace("gpu g1 ", "nic g1 ").replace("dev=1", "x=1"), "gpu0", "gpu1"))

    def test_it_is_said_why_a_nic_does_not_reach_a_gpus_memory(self):
        host = "; data goes through memory of the host"
        far = "not used: the path crosses the root complex of cpu0 (PHB), and NCCL goes up to PXB"
        below = ('<pci busid="0000:0f:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">'
                 '<pci busid="0000:01:00.0"')
        near = machine().replace('<pci busid="0000:01:00.0"', below, 1)
        # The bridge holds the first GPU, the second and the NIC.
        near = near.replace("</nic></pci></cpu>", "</nic></pci></pci></cpu>", 1)
        for text, one, other, said in (
                (machine(), "gpu0", "nic0", far + host),
                (near, "gpu0", "nic0", "yes, PIX is near enough"),
                (near, "nic0", "gpu0", "yes, PIX is near enough"),
                (near, "gpu0", "port0", "yes, PIX is near enough"),
                (near, "gpu2", "nic0", "not used: the path leads from cpu1 to cpu0 (SYS), and NCCL goes up to "
                 "PXB; data goes over NVLink to gpu0, which is near enough (PXN)"),
                (near.replace('maxconn="1" gdr="1"', 'gdr="0"'), "gpu0", "nic0",
                 "not used: port0 says gdr=0: its driver reaches no memory of GPUs" + host),
                (near.replace('rank="0" gdr="1"', 'rank="0" gdr="0"'), "gpu0", "nic0",
                 "not used: gpu0 says gdr=0: its driver lets no NIC reach its memory" + host)):
            self.assertEqual(self.access(text, one, other), "GPUDirect RDMA: " + said)
        virtual = machine().replace("</cpu>", '<nic><net name="br0" dev="1" speed="1000"/></nic></cpu>', 1)
        self.assertEqual(self.access(virtual, "gpu0", "nic0"),  # without a bus id it comes first
                         "GPUDirect RDMA: not used: nic0 hangs off no PCIe bus" + host)
        text = self.topo("export", "--file", self.file(near))
        for fact in (" gdr=1", " gdr=0"):
            text = text.replace(fact, "")
        self.assertEqual(self.access(text, "gpu0", "nic0"), "GPUDirect RDMA: yes, PIX is near enough; that gpu0 and "
                                                            "port0 can is not said")

    def test_machines_are_compared(self):
        one = self.file(machine())
        self.assertEqual(self.topo("diff", one, one), "")
        other = self.file(machine().replace("0000:03:00.0", "0000:0f:00.0")
                          .replace('speed="100000"', 'speed="200000"'), "other.xml")
        text = self.topo("diff", one, other, status=1)
        for line in ("- gpu 0000:03:00.0", "+ gpu 0000:0f:00.0",
                     "  port mlx5_0: speed 100000, 200000",
                     "  port nic 0000:0a:00.0 -> port mlx5_0: 12.5 GB/s, 25 GB/s"):
            self.assertIn(line + "\n", text)

    def test_lint_says_what_is_wrong_and_where(self):
        self.assertEqual(self.topo("lint", self.file(machine())), "")
        bad = self.file("<system version=\"1\">\n  <cpu numaid=\"0\">\n    <pci", "bad.xml")
        self.assertRegex(self.topo("lint", bad, status=1), r"bad\.xml:3:5: error: ")
        found = json.loads(self.topo("lint", bad, "--format", "json", status=1))
        self.assertFalse(found["files"][0]["readable"])
        text = self.topo("plan", "--file", bad, status=2)
        self.assertIn("describes no machine", text)

    def test_what_is_exported_reads_back_the_same(self):
        file = self.file(machine())
        for dialect in ("khoro", "nccl-xml"):
            copy = self.file(self.topo("export", "--file", file, "--format", dialect), "copy")
            self.assertEqual(self.topo("diff", file, copy), "", dialect)
        self.assertIn("gpu0 -- fabric0", self.topo("export", "--file", file, "--format", "dot"))
        json.loads(self.topo("export", "--file", file, "--format", "json"))

    def test_pictures_are_well_formed_and_stand_alone(self):
        file = self.file(machine().replace("mlx5_0", "a&lt;b&amp;c"))
        svg = xml.fromstring(self.topo("export", "--file", file, "--format", "svg"))
        texts = ["".join(node.itertext()) for node in svg.iter() if node.tag.endswith("text")]
        for name in ("gpu0", "gpu3", "fabric0", "cpu1", "a<b&c"):
            self.assertIn(name, texts)
        page = self.topo("export", "--file", file, "--format", "html")
        self.assertIn('<option value="load">', page)
        self.assertNotRegex(page.replace("http://www.w3.org/2000/svg", ""), "https?://")

    def test_as_many_sites_as_a_file_may_have_take_no_minutes(self):
        devices = "".join(f"gpu g{i} machine 0 dev={i}\nlink pci g{i} -- c\n" for i in range(60000))
        file = self.file("topology\ncpu c machine 0 numaid=0\n" + devices)
        text = self.topo("show", "--file", file)
        self.assertIn("\n  gpu59999  12\n    ! says no PCIe speed", text)

    def test_nothing_stands_in_the_way_of_links_between_gpus(self):
        file = GOLDEN / "synth-hybrid-cube-mesh-8xv100.xml"
        svg = xml.fromstring(self.topo("export", "--file", file, "--format", "svg"))
        boxes = {}
        for group in svg.iter("{http://www.w3.org/2000/svg}g"):
            rect, text = group[0], group[1].text
            boxes[text] = [float(rect.get(side)) for side in ("x", "y", "width", "height")]
        lowest = boxes["gpu0"][1] + boxes["gpu0"][3]
        for name, (_, y, _, height) in boxes.items():
            self.assertLessEqual(y + height, lowest, name)
        ends = collections.defaultdict(set)
        for path in svg.iter("{http://www.w3.org/2000/svg}path"):
            one, other = re.match(r"(\w+) - (\w+):", path[0].text).groups()
            if one[:3] == other[:3] == "gpu":
                numbers = [float(number) for number in re.findall(r"[\d.]+", path.get("d"))]
                self.assertEqual((numbers[1], numbers[-1]), (lowest, lowest))
                for gpu, x in ((one, numbers[0]), (other, numbers[-2])):
                    self.assertTrue(boxes[gpu][0] < x < boxes[gpu][0] + boxes[gpu][2])
                    ends[gpu].add(x)
        self.assertEqual([len(ends[f"gpu{i}"]) for i in range(8)], [4] * 8)
        self.assertIn("nvlink 20 to 40", "".join(svg.itertext()))

    def test_a_capture_is_a_machine(self):
        files = {"sys/devices/system/node/node0/cpulist": "0-3",
                 "proc/cpuinfo": "vendor_id\t: GenuineIntel\n",
                 "sys/devices/pci0000:00/0000:00:02.0/class": "0x030200",
                 "sys/devices/pci0000:00/0000:00:02.0/vendor": "0x10de"}
        root = pathlib.Path(self.folder.name)
        with tarfile.open(root / "capture.tar.gz", "w:gz") as archive:
            for name, text in files.items():
                path = root / "tree" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
                entry = tarfile.TarInfo("host/" + name)
                entry.size = len(text)
                archive.addfile(entry, io.BytesIO(text.encode()))
            link = tarfile.TarInfo("host/sys/bus/pci/devices/0000:00:02.0")
            link.type, link.linkname = tarfile.SYMTYPE, "../../../devices/pci0000:00/0000:00:02.0"
            archive.addfile(link)
        devices = root / "tree/sys/bus/pci/devices"
        devices.mkdir(parents=True)
        (devices / "0000:00:02.0").symlink_to("../../../devices/pci0000:00/0000:00:02.0")
        for capture in (root / "capture.tar.gz", root / "tree"):
            text = self.topo("show", "--file", capture)
            self.assertIn("1 cpu, 1 gpu", text)
            self.assertIn("gpu0 0000:00:02.0", text)
        (root / "empty").mkdir()
        self.assertIn("holds no capture", self.topo("show", "--file", root / "empty", status=2))

    def archive(self, name, files, mode="w"):
        path = pathlib.Path(self.folder.name) / name
        with tarfile.open(path, mode) as archive:
            for inside, content in files.items():
                entry = tarfile.TarInfo("host/" + inside)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
        return path

    def test_an_archive_that_is_cut_off_is_told_as_one(self):
        # What cannot be made smaller, so that compressed ones are cut in what matters, too.
        files = {"sys/devices/system/node/node0/cpulist": b"0-3", "proc/cpuinfo": b"vendor_id\t: a\n",
                 "sys/noise": random.Random(1).randbytes(20000)}
        for mode in ("w", "w:gz", "w:bz2", "w:xz"):
            path = self.archive("whole.tar", files, mode)
            self.assertEqual(self.topo("lint", path), "", mode)
            whole = path.read_bytes()
            for size in (700, 3000, 8001, 20001):
                path.write_bytes(whole[:size])
                self.assertEqual(self.topo("lint", path, status=1),
                                 f"{path}:error: an archive that is cut off after byte {size}\n", mode)
            path.write_bytes(whole[:100])
            self.assertRegex(self.topo("lint", path, status=1), r"tar:error: .* cut off after byte 100\n")
        path = self.archive("no-end.tar", files)
        path.write_bytes(path.read_bytes()[:2048])  # after two entries of one block each
        self.assertIn("no-end.tar:warning: the archive has no mark at its end",
                      self.topo("lint", path, status=1))
        path.write_bytes(path.read_bytes()[:512])
        self.assertIn("cut off after byte 512", self.topo("lint", path, status=1))

    def test_a_text_is_no_archive_for_its_name(self):
        for name in ("x.target.xml", "x.tar-old.xml"):
            self.assertEqual(self.topo("lint", self.file(machine(), name)), "")

    def test_a_capture_without_proc_says_once_what_is_not_known(self):
        path = self.archive("a.tar", {"sys/devices/system/node/node0/cpulist": b"0-3",
                                      "sys/devices/system/node/node1/cpulist": b"4-7"})
        self.assertEqual(self.topo("lint", path, status=1),
                         f"{path}:warning: no /proc/cpuinfo: vendor and model of the CPUs are not known, "
                         "nor how fast they reach each other\n")
        self.assertIn("! warning: no /proc/cpuinfo", self.topo("show", "--file", path))

    def test_gpus_are_chosen_only_where_channels_are_shown(self):
        file = self.file(machine())
        for dialect in ("khoro", "nccl-xml", "json", "dot", "svg"):
            self.assertIn("--format html alone", self.topo("export", "--file", file, "--gpus", "0,1",
                                                           "--format", dialect, status=2))
        page = self.topo("export", "--file", file, "--gpus", "0,1", "--format", "html")
        self.assertIn("ring 0", page)

    def test_links_of_one_way_are_drawn_as_such(self):
        file = self.file("topology\ncpu c0 machine 0 numaid=0\ncpu c1 machine 0 numaid=1\n"
                         "cpu c2 machine 0 numaid=2\nlink socket c1 -> c0 10 GB/s\n"
                         "link socket c1 -- c2 10 GB/s\n")
        svg = self.topo("export", "--file", file, "--format", "svg")
        self.assertIn("<title>cpu1 &gt; cpu0: socket 10 GB/s one way</title>", svg)
        self.assertIn("<title>cpu1 - cpu2: socket 10 GB/s each way</title>", svg)
        self.assertEqual(svg.count("<title>"), 2)
        dot = self.topo("export", "--file", file, "--format", "dot")
        self.assertRegex(dot, r"cpu1 -- cpu0 \[.*, dir=forward\];")
        self.assertRegex(dot, r"cpu1 -- cpu2 \[[^=]*=[^=]*=[^=]*\];")

    def test_names_of_files_control_no_terminal(self):
        bad = self.file("<a/>", "a\nb\x1b[31m\x7f.xml")
        for arguments, status in ((("lint", bad), 1), (("lint", bad + "2"), 1),
                                  (("show", "--file", bad), 2), (("show", "--file", bad + "2"), 2)):
            text = self.topo(*arguments, status=status)
            self.assertIn("a?b?[31m?.xml", text)
            self.assertNotIn("\x1b", text)
            self.assertNotIn("a\nb", text)
            if arguments[0] == "lint":
                self.assertEqual(text.count("\n"), 1)

    def test_what_hangs_off_no_cpu_is_shown_and_joined_by_nothing(self):
        file = self.file("topology\ngpu g0 machine 0 dev=0\ngpu g1 machine 0 dev=1\n")
        text = self.topo("show", "--file", file)
        self.assertIn("gpu0", text)
        self.assertIn("gpu1", text)
        self.assertIn("no links join them", self.topo("plan", "--file", file, "--simulate", "64M"))

    def test_absurd_rates_overflow_nothing(self):
        file = self.file("topology\ngpu g0 machine 0 dev=0\ngpu g1 machine 0 dev=1\n"
                         "link nvlink g0 -- g1 1e200 GB/s\n")
        found = json.loads(self.topo("plan", "--file", file, "--format", "json"))
        self.assertGreater(found["whole"]["bound_bytes_per_second"], 1e13)
        self.assertEqual(found["whole"]["ratio"], 1)

    def test_two_devices_of_one_bus_id_are_two(self):
        one = machine().replace("0000:02:00.0", "0000:01:00.0")
        file, alone = self.file(one), self.file(machine().replace("0000:02:00.0", "0000:09:00.0"), "b")
        self.assertIn("- gpu 0000:01:00.0 #2\n", self.topo("diff", file, alone, status=1))

    def test_what_is_no_text_becomes_one(self):
        path = pathlib.Path(self.folder.name) / "odd"
        path.write_bytes(b'topology\ngpu g0 machine 0 busid="a<&\x01\xff\x1b[31m" dev=0\n')
        for dialect in ("svg", "html", "nccl-xml"):
            done = subprocess.run([KHORO, "topo", "export", "--file", path, "--format", dialect],
                                  capture_output=True, timeout=100)
            self.assertNotIn(b"\x1b", done.stdout)
            if dialect != "nccl-xml":
                done.stdout.decode("utf-8")
            if dialect == "svg":
                xml.fromstring(done.stdout)
        self.assertNotIn("\x1b", self.topo("show", "--file", path))

    def test_what_is_no_file_is_refused_and_lint_goes_on(self):
        pipe = pathlib.Path(self.folder.name) / "pipe"
        os.mkfifo(pipe)
        self.assertIn("neither a file nor a folder", self.topo("show", "--file", pipe, status=2))
        bad = self.file("", "empty.xml")
        text = self.topo("lint", pipe, "nothing", bad, status=1)
        self.assertIn("pipe:error: neither", text)
        self.assertIn("nothing:error: No such file", text)
        self.assertIn("empty.xml:1:1: error: the text is empty", text)

    def test_too_long_a_simulation_is_refused(self):
        self.assertIn("at most 2000000 can be simulated",
                      self.topo("plan", "--file", self.file(machine()), "--simulate", "1E", status=2))

    def test_a_file_that_is_not_there_is_named(self):
        self.assertIn("nothing.xml: No such file", self.topo("show", "--file", "nothing.xml", status=2))


if __name__ == "__main__":
    unittest.main()
